"""A control request is obeyed by the process that it was written to, not by its successor."""

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
        """What led to it was there when it was put on the queue, whenever it is sent."""
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
