"""A broker that shuts down learns that its leaderships have moved."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e


class EndsAsLeader(Violation, frozen=True):
    """The leader and leader epoch in its metadata, and the epoch in which it still leads."""

    shown_leader: int
    shown_epoch: int
    epoch: int

    sentence = (
        "broker {broker} ends as leader in epoch {epoch}, although its metadata shows leader"
        " {shown_leader} in epoch {shown_epoch}"
    )


class DemotedLeadersAreInformed(Invariant):
    """A broker that shuts down in an orderly way, and shows another leader of a later epoch in
    its metadata, no longer believes that it leads (S5)."""

    def begin(self) -> None:
        self._resigned: set[int] = set()
        self._joining: set[int] = set()

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._resigned.discard(event.broker)

    def on_broker_registered(self, event: e.BrokerRegistered) -> None:
        """A broker that registers receives all metadata first, and then its roles
        (KafkaController.scala@3.3.2 onBrokerStartup). It may end in between."""
        self._joining.add(event.broker)

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self._joining.discard(event.broker)

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        self._resigned.add(event.broker)

    def on_broker_exited(self, event: e.BrokerExited) -> None:
        if event.broker in self._resigned:
            return  # the thread that sends its requests to itself ended with it
        if event.broker in self._joining:
            return  # it has the metadata already, and its roles were still to come
        cache = self.state.metadata.entries.get(event.broker, {})
        for name, (shown, _) in cache.items():
            replica = self.state.replicas.of(name, event.broker)
            if replica is None or replica.leader != event.broker or shown.leader < 0:
                continue
            if event.broker not in shown.replicas:
                continue  # its replica has moved away; a StopReplica will end its role
            if shown.leader != event.broker and shown.leader_epoch > replica.leader_epoch:
                self.violated(
                    EndsAsLeader(
                        shown.leader,
                        shown.leader_epoch,
                        replica.leader_epoch,
                        facts=(replica.seq, event.seq),
                        partition=name,
                        broker=event.broker,
                    )
                )
