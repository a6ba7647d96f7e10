"""Up to 2.0 a controller can still write after another one was elected (KAFKA-6082)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emulator.invariants.base import Violation
from emulator.invariants.demoted_leaders_are_informed import EndsAsLeader
from emulator.invariants.isr_within_assignment import UnassignedMembers
from emulator.invariants.known.base import Hazard, lacks
from emulator.invariants.metadata_never_moves_back import MovesBack
from emulator.kafka.profiles.guards.controller import FENCED_CONTROLLER_WRITES
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import CoreState
from emulator.trace.state.partitions import State, applied_ops, elects, state_partition
from emulator.trace.values import TopicPartition


class UnfencedController(Hazard):
    """KafkaZkClient.scala@2.0.1 updateLeaderAndIsr does not check the controller epoch (H6)."""

    name = "KAFKA-6082"
    about = (
        "A controller whose session has expired continues its work. Its writes are accepted "
        "wherever the version of the state is still the one that it knows."
    )
    breaks = (
        "state has one writer",
        "controller knows states",
        "metadata converges",
        "replicas return to isr",
        "followers fetch",
        "metadata never moves back",
        "isr within assignment",
        "demoted leaders are informed",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The writer (or the last writer of a state that the controller does not know) runs a
        version without fenced writes."""
        written: AnyEvent | None
        if isinstance(violation, MovesBack):
            written = _write_behind_a_read(violation, events)
        elif violation.invariant == self.breaks[0]:
            written = events[violation.facts[1]]
        elif isinstance(violation, UnassignedMembers):
            written = _assignment_after_election(violation, events)
        elif isinstance(violation, EndsAsLeader):
            written = _demotion_after_election(violation, events)
        else:
            # If the leader that it elected changes the ISR, the next controller reads who leads,
            # but sends no LeaderAndIsr: the followers need an election.
            needs_roles = violation.invariant in ("replicas return to isr", "followers fetch")
            written = _write_after_election(violation.partition, events, until_elected=needs_roles)
        return isinstance(written, e.ZkTransaction) and lacks(
            FENCED_CONTROLLER_WRITES, written, events
        )


def _states(
    name: TopicPartition | None, events: Sequence[AnyEvent]
) -> Iterator[tuple[AnyEvent, State, bool, bool]]:
    """Each state of the partition and its write; whether this elected, or created the state; and
    whether it came from a controller that had been replaced."""
    state, controllers = CoreState(), [0]
    for event in events:
        state(event)
        if isinstance(event, e.ControllerElected):
            controllers.append(event.broker)
        states = state.partitions.of(name).states[-2:] if name is not None else []
        if states and states[-1].seq == event.seq:
            by = states[-1].by
            was_deposed = by in controllers and by != controllers[-1]
            yield event, states[-1], len(states) == 1 or elects(*states), was_deposed


def _write_after_election(
    name: TopicPartition | None, events: Sequence[AnyEvent], *, until_elected: bool
) -> AnyEvent | None:
    """The last write of this state (`until_elected`: the last one that elected), or its creation,
    if a controller made it after another one was elected. That one had found no state; it tries to
    create it too, which fails because the znode exists (PartitionStateMachine.scala@1.0.2
    initializeLeaderAndIsrForPartition), and knows none. If it removes the new leader from the ISR
    it elects nobody, because it knows another leader.
    """
    written: AnyEvent | None = None
    for event, state, has_elected, was_deposed in _states(name, events):
        if was_deposed and has_elected:
            written = event
        elif state.leader >= 0 and (has_elected or not until_elected):
            written = None
    return written


def _demotion_after_election(
    violation: EndsAsLeader, events: Sequence[AnyEvent]
) -> AnyEvent | None:
    """The election that the broker's metadata shows, if a replaced controller wrote it: the brokers
    refuse its LeaderAndIsr, and the next controller only reads and announces the state."""
    for event, state, has_elected, was_deposed in _states(violation.partition, events):
        if state.leader_epoch == violation.shown_epoch and has_elected and was_deposed:
            return event
    return None


def _assignment_after_election(
    violation: UnassignedMembers, events: Sequence[AnyEvent]
) -> AnyEvent | None:
    """The assignment's write, if a controller made it after another one was elected."""
    written = events[violation.facts[0]]
    elected = [
        event.broker for event in events[: written.seq] if isinstance(event, e.ControllerElected)
    ]
    return written if written.broker in elected and written.broker != elected[-1] else None


def _write_behind_a_read(
    violation: MovesBack, events: Sequence[AnyEvent]
) -> e.ZkTransaction | None:
    """An older controller's write of the newer state, if the newer controller had read the version
    before, and announced that one when brokers had the newer state from the older controller."""
    newer, older = events[violation.facts[0]], events[violation.facts[1]]
    assert isinstance(newer, e.MetadataCacheUpdated)
    assert isinstance(older, e.MetadataCacheUpdated)
    if newer.sender_epoch >= older.sender_epoch:
        return None
    version_read, write = -1, None
    for event in events[: older.seq]:
        match event:
            case e.ZkReply(op="getData", code=0) if event.broker == older.sender:
                # The reply may come after the write that its read preceded.
                if state_partition(event.path) == violation.partition:
                    version_read = event.version
            case e.ZkTransaction() if event.broker == newer.sender:
                versions = [
                    op.version
                    for op in applied_ops(event)
                    if op.op == "setData" and state_partition(op.path) == violation.partition
                ]
                if violation.version_before in versions:
                    write = event
    return write if version_read == violation.version else None
