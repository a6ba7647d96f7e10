"""KAFKA-9769: a LeaderAndIsr is applied only partly because the broker's session expired
meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, missing_members
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class Kafka9769(Hazard):
    """A new log's settings are read from ZooKeeper while LeaderAndIsr is processed. If that fails,
    the whole request fails, but earlier partitions already have the leader epoch and no fetcher,
    and the same epoch sent again is ignored (fixed in 2.7.0)."""

    name = "KAFKA-9769"
    about = (
        "A session that expires while a broker applies a LeaderAndIsr leaves partitions with the "
        "new leader epoch and no fetcher. When the request is sent again it is ignored."
    )
    breaks = ("followers fetch", "replicas return to isr")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Each broker outside the ISR failed in such a request, and has ignored its repetitions
        since."""
        return all(_is_stuck(broker, violation, events) for broker in missing_members(violation))


def _is_stuck(broker: int, violation: Violation, events: Sequence[AnyEvent]) -> bool:
    """Whether its last event for the partition ignores an epoch that it had when its request
    failed."""
    epoch = -1
    epoch_by_thread: dict[str, int] = {}
    half_done = ignored = False
    for event in events:
        if event.broker != broker:
            continue
        match event:
            case e.BrokerStarting():
                half_done = ignored = False
            case e.LeaderAndIsr(state=state) if state.partition == violation.partition:
                epoch_by_thread[event.thread] = state.leader_epoch
            case e.LeaderAndIsrIgnored(state=state) if state.partition == violation.partition:
                epoch_by_thread.pop(event.thread, None)
                ignored = half_done and state.leader_epoch == epoch
            case e.ThreadFailed(what="LeaderAndIsrRequest", error=error) if (
                "EXPIRED" in error and event.thread in epoch_by_thread
            ):
                epoch, half_done = epoch_by_thread.pop(event.thread), True
            case e.FetchSent(offsets=offsets) if half_done and any(
                offset.partition == violation.partition for offset in offsets
            ):
                half_done = ignored = False
    return half_done and ignored
