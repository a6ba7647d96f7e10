"""KAFKA-9769: a LeaderAndIsr is obeyed by half, since the broker's session expired in the middle of
it."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, missing_members
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class Kafka9769(Hazard):
    """A new log's settings are read from ZooKeeper inside LeaderAndIsr. Where that fails the whole
    request fails, but partitions before it have taken the leader epoch and have no fetcher; the
    same epoch sent again is ignored (fixed in 2.7.0)."""

    name = "KAFKA-9769"
    about = (
        "A session that expires while a broker applies a LeaderAndIsr leaves partitions with the "
        "new leader epoch and no fetcher. When the request is sent again it is ignored."
    )
    breaks = ("followers fetch", "replicas return to isr")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Each broker that is out failed in such a request, and ignored it ever since."""
        return all(_is_stuck(broker, violation, events) for broker in missing_members(violation))


def _is_stuck(broker: int, violation: Violation, events: Sequence[AnyEvent]) -> bool:
    """Its last word on the partition is that it ignores an epoch it had when its request failed."""
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
