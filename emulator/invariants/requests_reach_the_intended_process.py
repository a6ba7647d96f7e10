"""A control request is applied by the process that it was sent to, not by a successor."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class ObeysForPredecessor(Violation, frozen=True):
    sender: int

    sentence = (
        "broker {broker} has restarted, and obeys a request that {sender} sent to its old process"
    )


class RequestsReachTheIntendedProcess(Invariant):
    """A broker obeys no LeaderAndIsr and no StopReplica that the controller sent to an earlier
    process of this broker (S12)."""

    def begin(self) -> None:
        self._written: dict[int, int] = {}

    def on_control_request_sent(self, event: e.ControlRequestSent) -> None:
        """The causes of a request existed when it was queued, however late it is sent."""
        self._written[event.seq] = event.cause

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self._hold(event, event.state.partition)

    def on_stop_replica(self, event: e.StopReplica) -> None:
        self._hold(event, event.partition)

    def _hold(self, event: e.LeaderAndIsr | e.StopReplica, name: TopicPartition) -> None:
        written = self._written.get(event.cause, -1)
        began = self.state.metadata.started.get(event.broker, -1)
        if 0 <= written < began:
            facts = began, event.seq
            self.violated(
                ObeysForPredecessor(event.sender, facts=facts, partition=name, broker=event.broker)
            )
