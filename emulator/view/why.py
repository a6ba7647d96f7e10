"""Explains one ISR change: the leader's observation, the rule that applied, and the propagation.

Owns the facts of the explanation, derived from the trace state, and their JSON format; `why_text`
formats them as text. It knows the constants of Kafka's propagation rule, because a trace has
numbers but no reasons; it must not know the code that applied them.
"""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from emulator.trace import events as e
from emulator.trace.reader import Header
from emulator.trace.state.actions import faults
from emulator.trace.state.isr_updates import Attempt
from emulator.trace.state.notifications import Notification
from emulator.trace.state.partitions import State
from emulator.trace.state.propagation import first_known
from emulator.trace.state.spans import span_at
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import TopicPartition
from emulator.view.cause_chain import CauseStep, causes_of
from emulator.view.selectors import NotInRun

TICK_MS, QUIET_MS, AT_LAST_MS = 2_500, 5_000, 60_000
"""ReplicaManager.scala@2.6.3 isrChangePropagation period, IsrChangePropagationBlackOut,
IsrChangePropagationInterval.
"""
LAG, LAG_DEFAULT = "replica.lag.time.max.ms", 30_000
MESSAGES = "replica.lag.max.messages"
BY_TIME_ONLY, HALF_LAG = "lag-by-time-only", "isr-expiration-at-half-lag"
LOG_END, EPOCH_START = "stay-at-log-end", "join-past-epoch-start"
NOTIFICATIONS = "isr-change-notifications"
"""The guards on which the rules for the ISR depend, under their names in a trace's header. A trace
without this list is of a version that has all of them.
"""


class NoSuchChange(NotInRun):
    """The trace has no such partition or version; the message lists those it has."""


class Follower(msgspec.Struct, frozen=True):
    """The leader's knowledge of the follower that leaves or joins. `behind_ms` -1: not relevant
    (joining).
    """

    replica: int
    leo: int
    behind_ms: int = -1


class Hold(msgspec.Struct, frozen=True):
    """A run of the propagation task that sent nothing."""

    at_ms: float
    quiet_ms: int
    since_propagation_ms: int


class Hop(msgspec.Struct, frozen=True):
    """One step of the propagation; `ms` since the previous step, `at_ms` since the cluster was
    up."""

    to: str
    at_ms: float
    ms: float


class Shown(msgspec.Struct, frozen=True):
    """The arrival in one broker's metadata. `version` is the one that arrived (None: none until the
    trace's end), `old_ms` how long the broker showed the previous entry (`old_version`, `old_isr`)
    after the write.
    """

    broker: int
    old_version: int | None
    old_isr: tuple[int, ...]
    old_ms: float
    version: int | None
    at_ms: float | None


class Circumstance(msgspec.Struct, frozen=True):
    """A fault on a broker that left or joined, during the decision or shortly before."""

    broker: str
    text: str
    from_ms: float
    to_ms: float


class AlterIsrSending(msgspec.Struct, frozen=True):
    """A request to the controller with the proposal and the number of other proposals; `ms` after
    the decision."""

    controller: int
    at_ms: float
    ms: float
    attempt: int
    partitions: int


class Story(msgspec.Struct, kw_only=True):
    """All facts of one change, as printed by `--json`; missing facts are None or empty."""

    partition: str
    version: int
    change: str
    at_ms: float
    by: int
    by_controller: bool
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    isr_before: tuple[int, ...]
    leader_before: int | None
    hw: int | None = None
    leo: int | None = None
    followers: list[Follower] = []
    lag_ms_max: int | None = None
    lag_messages_max: int | None = None
    stays_at_log_end: bool = True
    past_epoch_start: bool = True
    notifies: bool = True
    check_every_ms: int | None = None
    circumstances: list[Circumstance] = []
    causes: list[CauseStep] = msgspec.field(default_factory=list, name="because")
    expected_version: int | None = None
    refused: int = 0
    sendings: list[AlterIsrSending] = msgspec.field(default_factory=list, name="asked")
    holds: list[Hold] = []
    later_changes: int = 0
    notification: str | None = None
    quiet_ms: int | None = None
    since_propagation_ms: int | None = None
    legs: list[Hop] = []
    shown: list[Shown] = []
    never_shown: bool = False
    is_over: bool = True
    reason: str = ""


def explain_version(
    timeline: Timeline, header: Header, partition: TopicPartition, version: int
) -> Story:
    """The explanation of the write of `version` of the partition's state. Raises NoSuchChange."""
    write, before = _write(timeline, partition, version)
    attempt = _attempt(timeline, write)
    decided_us = attempt.started.t if attempt is not None else write.from_us
    if attempt is not None:
        change = attempt.started.change
    elif before is None or write.version == 0:
        change = "created"
    elif write.leader != before.leader:
        change = "elected" if write.leader >= 0 else "offline"
    else:
        change = "changed"
    story = Story(
        partition=str(partition),
        version=version,
        change=change,
        at_ms=_ms(timeline, decided_us),
        by=write.by,
        by_controller=write.by_controller,
        leader=write.leader,
        leader_epoch=write.leader_epoch,
        isr=write.isr,
        isr_before=before.isr if before is not None else (),
        leader_before=before.leader if before is not None else None,
        legs=[Hop("ZooKeeper", _ms(timeline, write.from_us), (write.from_us - decided_us) / 1000)],
        stays_at_log_end=_has(header, LOG_END),
        past_epoch_start=_has(header, EPOCH_START),
        notifies=_has(header, NOTIFICATIONS),
        is_over=timeline.is_over,
    )
    if attempt is not None:
        _add_decision(story, timeline, header, attempt)
    else:
        story.causes = causes_of(timeline, write)
    _add_propagation(story, timeline, write, attempt)
    return story


def _has(header: Header, guard: str) -> bool:
    return header.guards is None or guard in header.guards


def _ms(timeline: Timeline, at_us: int) -> float:
    return (at_us - timeline.origin_us) / 1000


def _write(
    timeline: Timeline, partition: TopicPartition, version: int
) -> tuple[State, State | None]:
    history = timeline.states(partition)
    if not history:
        raise NoSuchChange(f"{partition}: no such partition in this run")
    for place in reversed(range(len(history))):
        if history[place].version == version:
            return history[place], history[place - 1] if place else None
    versions = sorted({write.version for write in history})
    exist = f"v{versions[0]} to v{versions[-1]}" if len(versions) > 1 else f"only v{versions[0]}"
    raise NoSuchChange(f"{partition}@v{version}: no such version; the run has {exist}")


def _attempt(timeline: Timeline, write: State) -> Attempt | None:
    """The leader's attempt that led to the write; None if the controller decided it."""
    for attempt in reversed(timeline.attempts(write.partition)):
        started, ended = attempt.started, attempt.ended
        fits = started.zk_version == write.version - 1 and started.to_isr == write.isr
        mine = write.by_controller or started.broker == write.by
        if fits and mine and not isinstance(ended, e.IsrUpdateRejected | e.AlterIsrFailed):
            return attempt
    return None


# -- the decision ----------------------------------------------------------------------------------


def _add_decision(story: Story, timeline: Timeline, header: Header, attempt: Attempt) -> None:
    started = attempt.started
    story.hw, story.leo = started.hw, started.leo
    story.expected_version = started.zk_version
    # Attempts of the same leader that were refused just before this one succeeded.
    for one in timeline.attempts(started.partition):
        if one is attempt:
            break
        refused = isinstance(one.ended, e.IsrUpdateRejected)
        story.refused = story.refused + 1 if refused and one.started.broker == started.broker else 0
    for sent in attempt.requests:
        after_ms = (sent.t - started.t) / 1000
        at_ms, partitions = _ms(timeline, sent.t), len(sent.partitions)
        story.sendings.append(
            AlterIsrSending(sent.controller, at_ms, after_ms, sent.attempt, partitions)
        )
    if started.change == "shrink":
        story.followers = [Follower(*late) for late in started.out_of_sync]
        story.lag_ms_max = _setting(header, LAG, LAG_DEFAULT)
        # ReplicaManager.scala@2.6.3 startup: the check runs at half the lag time.
        story.check_every_ms = story.lag_ms_max // (2 if _has(header, HALF_LAG) else 1)
        if not _has(header, BY_TIME_ONLY):
            story.lag_messages_max = _setting(header, MESSAGES, 0)
    else:
        joined = [replica for replica in started.to_isr if replica not in started.from_isr]
        story.followers = [Follower(r, _leo(timeline, started, r)) for r in joined]
    # Faults on brokers that left, or from which brokers that joined had just recovered. A fault
    # that ended before the follower was last caught up is not the cause.
    since = {
        str(one.replica): started.t - 1000 * (one.behind_ms if one.behind_ms >= 0 else 1000)
        for one in story.followers
    }
    story.circumstances = [
        Circumstance(f.lane, f.text, _ms(timeline, f.from_us), _ms(timeline, f.to_us))
        for f in faults(timeline.events, timeline.end_us)
        if f.lane in since and f.from_us <= started.t and f.to_us > since[f.lane]
    ]


def _setting(header: Header, name: str, default: int) -> int:
    try:
        return int(header.settings.get(name, header.defaults.get(name, default)))
    except (TypeError, ValueError):
        return default


def _leo(timeline: Timeline, started: e.IsrUpdateStarted, replica: int) -> int:
    """The follower's LEO last recorded by the leader before the decision; -1 if unknown."""
    events = timeline.events
    place = bisect_left(events, (started.t, started.seq), key=lambda event: (event.t, event.seq))
    for event in reversed(events[:place]):
        if (
            isinstance(event, e.FollowerStateUpdated)
            and event.replica == replica
            and event.partition == started.partition
        ):
            return event.leo
    return -1


# -- propagation -----------------------------------------------------------------------------------


def _add_propagation(
    story: Story, timeline: Timeline, write: State, attempt: Attempt | None
) -> None:
    last_us = write.from_us

    def add_leg(to: str, at_us: int) -> None:
        story.legs.append(Hop(to, _ms(timeline, at_us), (at_us - last_us) / 1000))

    ended = attempt.ended if attempt is not None else None
    if ended is not None:
        add_leg("leader", ended.t)
    if ended is not None and not write.by_controller:
        # The leader's first notification after the write that includes the partition.
        named = (
            node
            for node in timeline.state.notifications.all
            if node.by == write.by
            and node.from_us >= write.from_us
            and write.partition in node.partitions
        )
        node = next(named, None)
        _add_waiting(story, timeline, ended, node)
        if node is not None:
            story.notification = node.path
            add_leg("notification", node.from_us)
            last_us = node.from_us
    read = first_known(timeline.state.controller.history.get(write.partition, []), write)
    if read is not None:
        cached = next((one for one in timeline.events if one.seq == read.seq), None)
        story.reason = cached.why if isinstance(cached, e.ControllerCacheUpdated) else ""
        add_leg("controller", read.from_us)
        last_us = max(last_us, read.from_us)
    for broker in timeline.brokers:
        spans = timeline.state.metadata.spans(broker, write.partition)
        old, new = span_at(spans, write.from_us), first_known(spans, write)
        if old is None and new is None:
            continue  # it was down throughout
        if old is not None and old.version == write.version:
            old = None
        old_ms = 0.0
        if old is not None:
            old_until_us = new.from_us if new is not None else timeline.until(old)
            old_ms = (old_until_us - write.from_us) / 1000
        story.shown.append(
            Shown(
                broker,
                old.version if old is not None else None,
                old.isr if old is not None else (),
                old_ms,
                new.version if new is not None else None,
                _ms(timeline, new.from_us) if new is not None else None,
            )
        )
        if new is not None:
            add_leg(f"broker {broker}", new.from_us)
    versions = {shown.version for shown in story.shown}
    is_awaited = None in versions and not timeline.is_over
    story.never_shown = bool(versions) and write.version not in versions and not is_awaited


def _add_waiting(
    story: Story,
    timeline: Timeline,
    known: e.IsrUpdated | e.IsrUpdateRejected | e.AlterIsrFailed,
    node: Notification | None,
) -> None:
    """Add the runs of the leader's propagation task in between, and the changes that restarted its
    wait."""
    until = node.from_us if node is not None else timeline.end_us
    for hold in timeline.state.notifications.held.get(known.broker, []):
        if known.t <= hold.t <= until and known.partition in hold.pending:
            at = _ms(timeline, hold.t)
            story.holds.append(Hold(at, hold.quiet_ms, hold.since_propagation_ms))
    story.later_changes = sum(
        known.t < attempt.ended.t <= until
        for attempts in timeline.state.isr_updates.attempts.values()
        for attempt in attempts
        if isinstance(attempt.ended, e.IsrUpdated) and attempt.ended.broker == known.broker
    )
    if node is not None and node.sent is not None:
        story.quiet_ms = node.sent.quiet_ms
        story.since_propagation_ms = node.sent.since_propagation_ms
