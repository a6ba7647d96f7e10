"""Races that a search should exercise at least once, detected in the trace.

A search without findings covers only the races that it exercised. Owns the list, each with a
sentence; knows no world and no search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from emulator.trace import events
from emulator.trace.events import AnyEvent
from zk.errors import Code

Trace = Sequence[AnyEvent]
Goal = Callable[[Trace], bool]
NOTIFICATION_EVENT = "IsrChangeNotification"


def any_of(*kinds: type[AnyEvent], sentence: str) -> Goal:
    """An event of one of these kinds occurred."""

    def happened(trace: Trace) -> bool:
        return any(isinstance(event, kinds) for event in trace)

    happened.__doc__ = sentence
    return happened


def bad_version_seen(trace: Trace) -> bool:
    """A conditional write came too late: BadVersion."""
    return any(
        isinstance(event, events.IsrUpdateRejected)
        or (isinstance(event, events.ZkReply) and event.code == Code.BAD_VERSION)
        for event in trace
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


def watch_fired_before_list_was_processed(trace: Trace) -> bool:
    """A controller's watch fired again before its last event was processed."""
    queued: set[int] = set()
    for event in trace:
        if isinstance(event, events.ControllerEventQueued) and event.event == NOTIFICATION_EVENT:
            if event.broker in queued:
                return True
            queued.add(event.broker)
        elif isinstance(event, events.ControllerEventProcessed) and (
            event.event == NOTIFICATION_EVENT
        ):
            queued.discard(event.broker)
    return False


def alter_isr_retried(trace: Trace) -> bool:
    """A broker sent the same AlterIsr again."""
    return any(isinstance(event, events.AlterIsrSent) and event.attempt > 1 for event in trace)


COVERAGE_GOALS: Mapping[str, Goal] = {
    "BadVersion seen": bad_version_seen,
    "two notifications coalesced": notifications_coalesced,
    "a watch fired before the list was processed": watch_fired_before_list_was_processed,
    "controller moved": any_of(
        events.ControllerElected, sentence="Another broker became controller."
    ),
    "controller moved with notifications outstanding": controller_moved_with_notifications,
    "reply lost after apply": reply_lost_after_apply,
    "AlterIsr retried": alter_isr_retried,
    "ISR changed": any_of(events.IsrUpdated, sentence="A leader changed an ISR."),
    "leader changed": any_of(events.BecomesLeader, sentence="A broker became leader."),
    "control request refused": any_of(
        events.ControlRequestRefused,
        events.LeaderAndIsrIgnored,
        events.StopReplicaIgnored,
        sentence="A broker refused or ignored a controller's request.",
    ),
    "log truncated": any_of(events.LogTruncated, sentence="A follower truncated its log."),
}


def seen_in(trace: Trace) -> frozenset[str]:
    """The goals that were reached."""
    return frozenset(name for name, happened in COVERAGE_GOALS.items() if happened(trace))


def never(seen: Iterable[str]) -> tuple[str, ...]:
    """The goals that were not reached, in the order of the list."""
    known = set(seen)
    return tuple(name for name in COVERAGE_GOALS if name not in known)
