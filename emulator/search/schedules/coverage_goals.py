"""What a search should have seen at least once: races that were really run, read from the trace.

A search that finds nothing says something only about what it has exercised. Owns the list, each
with a sentence; knows no world and no search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from emulator.trace import events
from zk.errors import Code

Trace = Sequence[Any]
NOTIFICATION_EVENT = "IsrChangeNotification"


def bad_version_seen(trace: Trace) -> bool:
    """A conditional write came too late: BadVersion."""
    return any(isinstance(e, events.IsrUpdateRejected) for e in trace) or any(
        isinstance(e, events.ZkReply) and e.code == Code.BAD_VERSION for e in trace
    )


def notifications_coalesced(trace: Trace) -> bool:
    """Two notifications were there when the controller looked once."""
    waiting = 0
    for event in trace:
        if isinstance(event, events.IsrChangeNotified):
            waiting += 1
        elif isinstance(event, events.ControllerEventProcessed) and (
            event.event == NOTIFICATION_EVENT
        ):
            if waiting > 1:
                return True
            waiting = 0
    return False


def controller_moved_with_notifications(trace: Trace) -> bool:
    """A controller was elected while a notification had not been read."""
    waiting = 0
    for event in trace:
        if isinstance(event, events.IsrChangeNotified):
            waiting += 1
        elif isinstance(event, events.IsrChangeCleared):
            waiting = 0
        elif isinstance(event, events.ControllerElected) and waiting:
            return True
    return False


def controller_moved(trace: Trace) -> bool:
    """Another broker became controller."""
    return any(isinstance(event, events.ControllerElected) for event in trace)


def reply_lost_after_apply(trace: Trace) -> bool:
    """ZooKeeper applied a write, and its client lost the connection before the answer."""
    applied: dict[tuple[int, str, str | None], bool] = {}
    for event in trace:
        if isinstance(event, events.ZkSent):
            applied[event.broker, event.op, event.path] = False
        elif isinstance(event, events.ZkTransaction):
            key = (event.broker, event.op, event.path)
            if key in applied:
                applied[key] = True
        elif (
            isinstance(event, events.ZkReply)
            and event.code == Code.CONNECTION_LOSS
            and applied.get((event.broker, event.op, event.path))
        ):
            return True
    return False


def watch_fired_before_the_list_was_worked_off(trace: Trace) -> bool:
    """A controller's watch fired again while it had not worked off what it had fired for."""
    open_: set[int] = set()
    for event in trace:
        if isinstance(event, events.ControllerEventQueued) and event.event == NOTIFICATION_EVENT:
            if event.broker in open_:
                return True
            open_.add(event.broker)
        elif isinstance(event, events.ControllerEventProcessed) and (
            event.event == NOTIFICATION_EVENT
        ):
            open_.discard(event.broker)
    return False


def alter_isr_retried(trace: Trace) -> bool:
    """A broker sent the same AlterIsr again."""
    return any(isinstance(e, events.AlterIsrSent) and e.attempt > 1 for e in trace)


def isr_changed(trace: Trace) -> bool:
    """A leader changed an ISR."""
    return any(isinstance(e, events.IsrUpdated) for e in trace)


def leader_changed(trace: Trace) -> bool:
    """A broker became leader."""
    return any(isinstance(e, events.BecomesLeader) for e in trace)


def control_request_refused(trace: Trace) -> bool:
    """A broker refused a controller, or ignored what it said."""
    kinds = events.ControlRequestRefused | events.LeaderAndIsrIgnored | events.StopReplicaIgnored
    return any(isinstance(e, kinds) for e in trace)


def log_truncated(trace: Trace) -> bool:
    """A follower gave up records."""
    return any(isinstance(e, events.LogTruncated) for e in trace)


COVERAGE_GOALS: Mapping[str, Callable[[Trace], bool]] = {
    "BadVersion seen": bad_version_seen,
    "two notifications coalesced": notifications_coalesced,
    "a watch fired before the list was worked off": watch_fired_before_the_list_was_worked_off,
    "controller moved": controller_moved,
    "controller moved with notifications outstanding": controller_moved_with_notifications,
    "reply lost after apply": reply_lost_after_apply,
    "AlterIsr retried": alter_isr_retried,
    "ISR changed": isr_changed,
    "leader changed": leader_changed,
    "control request refused": control_request_refused,
    "log truncated": log_truncated,
}


def seen_in(trace: Trace) -> frozenset[str]:
    """Which of them happened."""
    return frozenset(name for name, happened in COVERAGE_GOALS.items() if happened(trace))


def never(seen: Iterable[str]) -> tuple[str, ...]:
    """Which did not, in the order of the list."""
    known = set(seen)
    return tuple(name for name in COVERAGE_GOALS if name not in known)
