"""Up to 2.0.0 a follower halts its broker if the leader's log is shorter (KAFKA-7414)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks, missing_members
from emulator.invariants.replicas_return_to_isr import NoLeader
from emulator.kafka.profiles.guards.following import OUT_OF_RANGE_NOT_FATAL
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.partitions import Partitions


class FatalOutOfRange(Hazard):
    """ReplicaFetcherThread.scala@1.0.2 handleOffsetOutOfRange: where unclean elections are
    forbidden, the broker halts rather than lose records, after each restart again."""

    name = "KAFKA-7414"
    about = (
        "A leader returns with a shorter log than its follower, and unclean elections are "
        "forbidden: the follower's broker halts, and halts again after each start."
    )
    breaks = ("brokers are registered", "metadata converges", "replicas return to isr")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Each missing member's process ended this way, or that of the broker whose metadata is
        outdated; without a leader, each ISR member's."""
        if isinstance(violation, NoLeader):
            partitions = Partitions()
            for event in events:
                if isinstance(event, e.ZkTransaction):
                    partitions.on_zk_transaction(event)
            now = partitions.of(violation.partition).now if violation.partition else None
            return now is not None and set(now.isr) <= _ended(events)
        ended = _ended(events)
        return violation.broker in ended or missing_members(violation) <= ended


def _ended(events: Sequence[AnyEvent]) -> set[int]:
    """Brokers that one of their fetcher threads halted, and that have not restarted since."""
    ended = set[int]()
    for event in events:
        if isinstance(event, e.BrokerStarting):
            ended.discard(event.broker)
        elif (
            isinstance(event, e.BrokerHalted)
            and event.reason.endswith("is not allowed")
            and lacks(OUT_OF_RANGE_NOT_FATAL, event, events)
        ):
            ended.add(event.broker)
    return ended
