"""The texts of events: one function per kind, shared by the lane table, the page and explanations.

Knows the trace vocabulary and the derived state, but not how texts are drawn.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import actions
from emulator.trace.state.notifications import notified_partitions
from emulator.trace.state.partitions import applied_ops, state_partition
from emulator.trace.values import LoggedOp, PartitionState, TopicPartition
from emulator.view.event_text import (
    BAD_VERSION,
    CLIENTS,
    CODES,
    CONTROLLER,
    DESCRIBERS,
    ZOOKEEPER,
    EventText,
    Level,
    Scene,
    describes,
    exact_span,
    fields_of,
    ids,
    lane_of,
    span,
)


def describe_event(event: AnyEvent, on: Scene) -> EventText:
    """Describe an event; a kind without a function of its own gets its name and fields."""
    describer = DESCRIBERS.get(type(event))
    if describer is not None:
        return describer(event, on)
    return EventText(
        event, lane_of(event), event.kind.replace("_", " "), fields_of(event), Level.DETAIL
    )


# -- the world -------------------------------------------------------------------------------------


@describes(e.ActionApplied)
def _action(event: e.ActionApplied, on: Scene) -> EventText:
    lane = actions.lane_of(event)
    tone = "fault" if lane else "life"
    level = Level.TRAFFIC if event.do in actions.SILENT else Level.STORY
    return EventText(event, lane, actions.describe(event), "", level, tone)


@describes(e.ActionReturned)
def _returned(event: e.ActionReturned, on: Scene) -> EventText:
    level = Level.TRAFFIC if event.result == "NONE" else Level.STORY
    return EventText(
        event, CLIENTS, f"result: {event.result}", "", level, "refused" if level == 0 else "plain"
    )


@describes(e.Parked)
def _parked(event: e.Parked, on: Scene) -> EventText:
    what = " ".join(filter(None, (event.of or event.at, event.which)))
    to = f" to {event.peer}" if event.peer else ""
    return EventText(
        event, on.requester(event), f"held: {what}{to}", f"at {event.at}", Level.STORY, "fault"
    )


# -- ZooKeeper -------------------------------------------------------------------------------------


@describes(e.ZkSent)
def _zk_sent(event: e.ZkSent, on: Scene) -> EventText:
    expects = f" expecting v{event.version}" if event.version >= 0 else ""
    return EventText(
        event, on.requester(event), f"{event.op} {event.path}{expects}", "", Level.TRAFFIC
    )


@describes(e.ZkReply)
def _zk_reply(event: e.ZkReply, on: Scene) -> EventText:
    took = f"after {span(event.elapsed_us)}"
    name = CODES.get(event.code, str(event.code))
    if event.code == BAD_VERSION:
        partition = state_partition(event.path)
        where = event.path if partition is None else on.name(partition).rstrip()
        numbers = [where] if where else []
        at = on.by_seq.get(event.cause)
        for _ in range(4):
            if isinstance(at, e.ZkSent) and at.path == event.path and at.version >= 0:
                numbers.insert(0, f"expected v{at.version}")
                break
            at = on.by_seq.get(at.cause) if at is not None else None
        truth = (
            on.timeline.zookeeper_state_at(partition, event.t) if partition is not None else None
        )
        text = f"{name}, have {truth.version}" if truth is not None else name
        source = on.requester(event)
        return EventText(event, ZOOKEEPER, text, ", ".join(numbers), tone="refused", source=source)
    lost = event.code in (-4, -112)
    text = f"{event.op} {event.path}: {'ok' if event.code == 0 else name}"
    level, tone = (Level.STORY, "refused") if lost else (Level.TRAFFIC, "plain")
    return EventText(event, on.requester(event), text, took, level, tone)


@describes(e.ZkRequest)
def _zk_request(event: e.ZkRequest, on: Scene) -> EventText:
    watch = " with watch" if event.watch else ""
    text = f"{event.op} {event.path or ''}{watch}"
    return EventText(event, on.requester(event), text, "", Level.TRAFFIC, source="")


@describes(e.ZkTransaction)
def _zk_transaction(event: e.ZkTransaction, on: Scene) -> EventText:
    text = EventText(event, ZOOKEEPER, "", "", Level.TRAFFIC, "plain", on.requester(event))
    if event.op in ("createSession", "closeSession"):
        # An expired session differs from a closed one: no request caused its end. Sessions of no
        # broker are the emulator's own, for setup.
        closed = event.op == "closeSession"
        cause = on.by_seq.get(event.cause)
        is_requested = isinstance(cause, e.ZkRequest) and cause.op == event.op
        text.headline = "session closed" if closed else "session opened"
        if closed and event.broker and not is_requested:
            text.headline, text.source = f"session of broker {event.broker} expired", ""
        text.numbers = "removed " + ", ".join(event.removed) if event.removed else ""
        text.level = Level.STORY if closed and event.broker else Level.TRAFFIC
        text.tone = "refused" if closed else "plain"
        return text
    ops = [op for op in applied_ops(event) if op.op != "check"]
    if not ops:
        code = next((op.code for op in event.ops if op.code), event.code) or 0
        text.headline = f"{event.op} refused: {CODES.get(code, code)}"
        return text
    for op in ops:
        # The first relevant operation determines the text.
        path = op.path or ""
        partition = state_partition(path)
        if partition is not None:
            text.level, text.tone = Level.STORY, "write"
            text.headline = _state_written(event, op, partition, on)
        elif path.startswith("/isr_change_notification/"):
            text.level, text.tone = Level.STORY, "notice"
            text.headline = f"{'+' if op.op == 'create' else '−'} {node(path)}"
            text.numbers = "" if on.only else on.names(notified_partitions(op.data))
        elif path == "/controller" or path.startswith("/brokers/ids/"):
            text.level, text.tone = Level.STORY, "life"
            text.headline = f"{'−' if op.op == 'delete' else '+'} {path}"
        if text.headline:
            return text
    text.headline = f"{ops[0].op} {ops[0].path}"
    return text


def node(path: str) -> str:
    """A notification's name with most of its zeros left out: `isr_change_…0`."""
    name, _, number = path.rsplit("/", 1)[1].rpartition("_")
    return f"{name}_…{int(number)}" if number.isdigit() else f"{name}_{number}"


def _state_written(
    event: e.ZkTransaction, op: LoggedOp, partition: TopicPartition, on: Scene
) -> str:
    name = on.name(partition)
    if op.op == "delete":
        return f"{name}state deleted"
    writes = on.timeline.states(partition)
    write = next((w for w in writes if w.seq == event.seq), writes[-1])
    step = f"v{write.version - 1}→v{write.version} ok" if write.version else "v0 created"
    leader = f" leader {write.leader}" if write.by_controller and write.version else ""
    return f"{name}{step}{leader} {ids(write.isr)}"


@describes(e.ZkWatchFired)
def _watch(event: e.ZkWatchFired, on: Scene) -> EventText:
    text = f"watch: {event.type} {event.path}"
    return EventText(event, lane_of(event), text, "", Level.TRAFFIC, source=ZOOKEEPER)


@describes(e.ZkSessionState)
def _session_state(event: e.ZkSessionState, on: Scene) -> EventText:
    news = {
        "Disconnected": "disconnected from ZooKeeper",
        "Expired": "learns that its session has expired",
    }
    text = news.get(event.state, f"ZooKeeper session {event.state}")
    level, tone = (Level.STORY, "refused") if event.state in news else (Level.TRAFFIC, "plain")
    return EventText(event, lane_of(event), text, "", level, tone)


@describes(e.ZnodeMalformed)
def _malformed(event: e.ZnodeMalformed, on: Scene) -> EventText:
    text = f"cannot read {event.path}"
    return EventText(event, lane_of(event), text, f"{event.field}: {event.problem}", tone="refused")


# -- a broker's process ----------------------------------------------------------------------------


@describes(e.BrokerStarting)
def _starting(event: e.BrokerStarting, on: Scene) -> EventText:
    return EventText(event, lane_of(event), "starts", f"Kafka {event.profile}", tone="life")


@describes(e.BrokerRegistered)
def _registered(event: e.BrokerRegistered, on: Scene) -> EventText:
    text = f"registered, broker epoch {event.broker_epoch}"
    return EventText(event, lane_of(event), text, "", Level.DETAIL, "life")


@describes(e.ThreadFailed)
def _thread_failed(event: e.ThreadFailed, on: Scene) -> EventText:
    return EventText(event, lane_of(event), event.what, event.error, tone="refused")


@describes(e.BrokerStarted)
def _is_up(event: e.BrokerStarted, on: Scene) -> EventText:
    return EventText(event, lane_of(event), "is up", tone="life")


@describes(e.BrokerHalted)
def _halted(event: e.BrokerHalted, on: Scene) -> EventText:
    return EventText(event, lane_of(event), "halts", event.reason, tone="refused")


@describes(e.ProcessStateChanged)
def _process(event: e.ProcessStateChanged, on: Scene) -> EventText:
    return EventText(event, lane_of(event), f"process {event.state}", "", Level.TRAFFIC, "life")


@describes(e.LogDirFailed)
def _log_dir_failed(event: e.LogDirFailed, on: Scene) -> EventText:
    gone = ", ".join(map(str, event.partitions)) or "no partitions"
    text = f"log directory {event.directory} is offline"
    return EventText(event, lane_of(event), text, gone, tone="refused")


@describes(e.BrokerExited)
def _exited(event: e.BrokerExited, on: Scene) -> EventText:
    return EventText(event, lane_of(event), "has stopped", tone="life")


# -- the leader ------------------------------------------------------------------------------------


@describes(e.RecordsAppended)
def _appended(event: e.RecordsAppended, on: Scene) -> EventText:
    count = event.leo - event.base_offset
    text = f"{on.name(event.partition)}+{count} record{'s' * (count != 1)}, LEO {event.leo}"
    return EventText(event, lane_of(event), text, "", Level.DETAIL)


@describes(e.FollowerStateUpdated)
def _follower(event: e.FollowerStateUpdated, on: Scene) -> EventText:
    name = on.name(event.partition)
    text = f"{name}sees {event.replica} at {event.leo} of {event.leader_leo}"
    return EventText(event, lane_of(event), text, "", Level.DETAIL, source=str(event.replica))


@describes(e.HwAdvanced)
def _hw(event: e.HwAdvanced, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}HW {event.hw}, LEO {event.leo}"
    return EventText(event, lane_of(event), text, "", Level.DETAIL)


@describes(e.IsrUpdateStarted)
def _isr_started(event: e.IsrUpdateStarted, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}{event.change}s {ids(event.from_isr)} → {ids(event.to_isr)}"
    late = [
        f"{out.replica} at LEO {out.leo} of {event.leo}, "
        f"behind for {exact_span(out.not_caught_up_ms)}"
        for out in event.out_of_sync
    ]
    return EventText(event, lane_of(event), text, "; ".join(late), tone=event.change)


@describes(e.IsrUpdated)
def _isr_updated(event: e.IsrUpdated, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}has {ids(event.isr)} at v{event.zk_version}"
    return EventText(event, lane_of(event), text, "", Level.STORY, "write", ZOOKEEPER)


@describes(e.IsrUpdateRejected)
def _isr_rejected(event: e.IsrUpdateRejected, on: Scene) -> EventText:
    truth = on.timeline.zookeeper_state_at(event.partition, event.t)
    have = f", ZooKeeper has v{truth.version}" if truth is not None else ""
    text = f"{on.name(event.partition)}{event.change} refused"
    numbers = f"cached v{event.cached_zk_version}{have}: keeps its old ISR"
    return EventText(event, lane_of(event), text, numbers, tone="refused")


@describes(e.ControllerShrinkCounted)
def _controller_shrink_counted(event: e.ControllerShrinkCounted, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}applies the controller's shrink to {ids(event.isr)}"
    return EventText(event, lane_of(event), text)


@describes(e.IsrChangeHeld)
def _held(event: e.IsrChangeHeld, on: Scene) -> EventText:
    of = "" if on.only else f" of {on.names(event.pending)}"
    numbers = f"quiet for {span(event.quiet_ms * 1000)} of 5 s"
    text = f"controller not notified yet{of}"
    return EventText(event, lane_of(event), text, numbers, Level.STORY, "notice")


@describes(e.IsrChangeNotified)
def _notified(event: e.IsrChangeNotified, on: Scene) -> EventText:
    rule = f"quiet for {span(event.quiet_ms * 1000)}"
    if event.quiet_ms <= 5000:
        rule = f"last notification {span(event.since_propagation_ms * 1000)} ago"
    of = "" if on.only else f" of {on.names(event.partitions)}"
    text = f"notifies the controller{of}"
    return EventText(event, lane_of(event), text, rule, Level.STORY, "notice")


# -- an ISR change through the controller (AlterIsr) ----------------------------------------------


@describes(e.AlterIsrProposed)
def _proposed(event: e.AlterIsrProposed, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}proposes {ids(event.isr)} in place of v{event.zk_version}"
    return EventText(event, lane_of(event), text, event.pending, Level.DETAIL, "notice")


@describes(e.AlterIsrSent)
def _alter_isr_sent(event: e.AlterIsrSent, on: Scene) -> EventText:
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    of = "" if on.only else f" for {on.names(event.partitions)}"
    text = f"AlterIsr to controller {event.controller}{of}{again}"
    many = f"{len(event.partitions)} partitions" if len(event.partitions) > 1 else ""
    tone = "refused" if again else "notice"
    return EventText(event, lane_of(event), text, many, Level.STORY, tone)


@describes(e.AlterIsrDecided)
def _decided(event: e.AlterIsrDecided, on: Scene) -> EventText:
    name, source = on.name(event.partition), str(event.sender)
    if event.error == "NONE":
        text = f"{name}accepts {ids(event.isr)} v{event.zk_version} from broker {event.sender}"
        return EventText(event, CONTROLLER, text, "", Level.DETAIL, "write", source)
    text = f"{name}refuses {ids(event.proposed)} from broker {event.sender}"
    return EventText(event, CONTROLLER, text, event.error, Level.STORY, "refused", source)


@describes(e.AlterIsrRefused)
def _alter_isr_refused(event: e.AlterIsrRefused, on: Scene) -> EventText:
    of = "" if on.only else f" for {on.names(event.partitions)}"
    text = f"broker {event.broker} refuses AlterIsr from broker {event.sender}{of}"
    return EventText(
        event, CONTROLLER, text, event.error, Level.STORY, "refused", str(event.sender)
    )


@describes(e.AlterIsrFailed)
def _failed(event: e.AlterIsrFailed, on: Scene) -> EventText:
    reason = event.error if event.error != "NONE" else "stale response"
    text = f"{on.name(event.partition)}{event.change} failed: {reason}"
    return EventText(event, lane_of(event), text, event.outcome, tone="refused")


# -- the follower ----------------------------------------------------------------------------------


@describes(e.FetchSent)
def _fetch(event: e.FetchSent, on: Scene) -> EventText:
    where = " ".join(f"{on.name(o.partition)}from {o.offset}" for o in event.offsets[:2])
    level = Level.DETAIL if event.offsets else Level.TRAFFIC
    return EventText(event, lane_of(event), f"fetches {where or '(nothing new)'}", "", level)


@describes(e.FetcherStarted)
def _fetcher_started(event: e.FetcherStarted, on: Scene) -> EventText:
    text = f"fetcher {event.fetcher_id} to broker {event.leader} starts"
    return EventText(event, lane_of(event), text, "", Level.DETAIL)


@describes(e.FetcherStopped)
def _fetcher_stopped(event: e.FetcherStopped, on: Scene) -> EventText:
    text = f"fetcher {event.fetcher_id} to broker {event.leader} ends"
    return EventText(event, lane_of(event), text, "", Level.DETAIL)


@describes(e.PartitionDelayed)
def _delayed(event: e.PartitionDelayed, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}delayed for {span(event.delay_ms * 1000)}: {event.reason}"
    return EventText(event, lane_of(event), text, "", Level.DETAIL, "refused")


@describes(e.PartitionMarkedFailed)
def _marked_failed(event: e.PartitionMarkedFailed, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}is marked as failed: {event.reason}"
    # Followers are fenced at nearly every change of leader, before the LeaderAndIsr arrives.
    level = Level.DETAIL if event.reason == "FENCED_LEADER_EPOCH" else Level.STORY
    return EventText(event, lane_of(event), text, "", level, "refused")


@describes(e.LogLoaded)
def _log_loaded(event: e.LogLoaded, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}reads its log: {event.log_start_offset} to {event.leo}"
    return EventText(event, lane_of(event), text, "", Level.DETAIL)


@describes(e.LogTruncated)
def _truncated(event: e.LogTruncated, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}truncates {event.from_leo} → {event.to_offset}"
    level = Level.STORY if event.to_offset < event.from_leo else Level.DETAIL
    return EventText(event, lane_of(event), text, "", level, "refused")


@describes(e.LogStartMoved)
def _log_start(event: e.LogStartMoved, on: Scene) -> EventText:
    start = f"{on.name(event.partition)}starts at {event.log_start_offset}"
    return EventText(event, lane_of(event), f"{start}: {event.reason}", "", Level.STORY, "plain")


# -- control requests ------------------------------------------------------------------------------


@describes(e.LeaderAndIsr)
def _leader_and_isr(event: e.LeaderAndIsr, on: Scene) -> EventText:
    text = f"LeaderAndIsr {on.name(event.state.partition)}{_state(event.state)}"
    return EventText(event, lane_of(event), text, "", Level.STORY, "life", CONTROLLER)


@describes(e.LeaderAndIsrIgnored)
def _leader_and_isr_ignored(event: e.LeaderAndIsrIgnored, on: Scene) -> EventText:
    text = f"ignores LeaderAndIsr {on.name(event.state.partition)}{_state(event.state)}"
    return EventText(event, lane_of(event), text, event.error, Level.STORY, "refused", CONTROLLER)


def _state(state: PartitionState) -> str:
    return f"leader {state.leader} epoch {state.leader_epoch} {ids(state.isr)} v{state.zk_version}"


@describes(e.StopReplica)
def _stop(event: e.StopReplica, on: Scene) -> EventText:
    text = f"StopReplica {on.name(event.partition)}{'and delete' if event.delete else ''}".rstrip()
    return EventText(event, lane_of(event), text, "", Level.STORY, "life", CONTROLLER)


@describes(e.StopReplicaIgnored)
def _stop_ignored(event: e.StopReplicaIgnored, on: Scene) -> EventText:
    text = f"ignores StopReplica {on.name(event.partition)}".rstrip()
    return EventText(event, lane_of(event), text, event.error, Level.STORY, "refused", CONTROLLER)


@describes(e.BecomesLeader)
def _leads(event: e.BecomesLeader, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}leads, epoch {event.leader_epoch}"
    return EventText(event, lane_of(event), text, f"LEO {event.leo}, HW {event.hw}", tone="life")


@describes(e.BecomesFollower)
def _follows(event: e.BecomesFollower, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}follows {event.leader}, epoch {event.leader_epoch}"
    return EventText(event, lane_of(event), text, f"LEO {event.leo}, HW {event.hw}", tone="life")


@describes(e.MetadataCacheUpdated)
def _metadata(event: e.MetadataCacheUpdated, on: Scene) -> EventText:
    text = EventText(event, lane_of(event), "", "", Level.STORY, "metadata", CONTROLLER)
    news = [one for state in event.states for one in _news(event, state, on)]
    if not news and not event.removed:
        text.headline = f"metadata: live {ids(event.live_brokers)}"
        text.level = Level.TRAFFIC
        return text
    if len(news) == 1:
        text.headline = f"metadata {on.name(news[0].partition)}{ids(news[0].isr)}"
        if news[0].before >= 0:
            text.numbers = f"v{news[0].before}→v{news[0].version}"
        else:
            text.headline += f" v{news[0].version}"
    else:
        changed = (*(one.partition for one in news), *event.removed)
        text.headline = f"metadata of {on.names(changed)}"
    late = max((one.late_us for one in news), default=0)
    text.numbers += f"{', ' if text.numbers else ''}{span(late)} late" if late else ""
    if len(news) == 1 and news[0].skipped:
        text.numbers += f"; {versions(news[0].skipped)} never shown"
    return text


class CacheChange(NamedTuple):
    """The difference to the previous cache entry: version `before` (-1: none), skipped versions,
    and how long the old one was stale.
    """

    partition: TopicPartition
    isr: tuple[int, ...]
    version: int
    before: int
    skipped: tuple[int, ...]
    late_us: int


def versions(numbers: tuple[int, ...]) -> str:
    """`v1`, `v1 and v2`, `v1–v24`."""
    if len(numbers) > 2:
        return f"v{numbers[0]}–v{numbers[-1]}"
    return " and ".join(f"v{number}" for number in numbers)


def _news(event: e.MetadataCacheUpdated, state: PartitionState, on: Scene) -> list[CacheChange]:
    if on.only not in (None, state.partition):
        return []
    spans = on.timeline.state.metadata.spans(event.broker, state.partition)
    place = bisect_left(spans, (event.t, event.seq), key=lambda known: (known.from_us, known.seq))
    if place == len(spans) or spans[place].seq != event.seq:
        return []
    before = spans[place - 1] if place and spans[place - 1].seq_to == event.seq else None
    if before is None:
        return [CacheChange(state.partition, state.isr, state.zk_version, -1, (), 0)]
    stale = [
        s for s in on.timeline.state.staleness.of_entry(event.broker, before) if s.to_us == event.t
    ]
    missed = tuple(v for s in stale for v in s.missed if v != state.zk_version)
    late = stale[0].to_us - stale[0].from_us if stale else 0
    return [CacheChange(state.partition, state.isr, state.zk_version, before.version, missed, late)]


@describes(e.ControlRequestRefused)
def _refused(event: e.ControlRequestRefused, on: Scene) -> EventText:
    text = f"refuses {event.request}: {event.error}"
    numbers = f"from {event.sender}, controller epoch {event.sender_epoch}"
    return EventText(event, lane_of(event), text, numbers, Level.STORY, "refused", CONTROLLER)


# -- the controller --------------------------------------------------------------------------------


@describes(e.ControllerElected)
def _elected(event: e.ControllerElected, on: Scene) -> EventText:
    text = f"broker {event.broker} is controller, epoch {event.controller_epoch}"
    return EventText(event, CONTROLLER, text, "", Level.STORY, "life")


@describes(e.ControllerResigned)
def _resigned(event: e.ControllerResigned, on: Scene) -> EventText:
    text = f"broker {event.broker} resigns, epoch {event.controller_epoch}"
    return EventText(event, CONTROLLER, text, "", Level.STORY, "refused")


@describes(e.ControllerEventQueued)
def _queued(event: e.ControllerEventQueued, on: Scene) -> EventText:
    text = f"{event.event} queued behind {event.behind}"
    return EventText(event, CONTROLLER, text, "", Level.TRAFFIC)


@describes(e.ControllerEventProcessed)
def _processed(event: e.ControllerEventProcessed, on: Scene) -> EventText:
    text = f"{event.event} done"
    numbers = f"waited {span(event.queued_us)}, took {span(event.took_us)}"
    slow = event.queued_us > 1_000_000
    return EventText(event, CONTROLLER, text, numbers, Level.STORY if slow else Level.TRAFFIC)


@describes(e.ControllerCacheUpdated)
def _controller_cache(event: e.ControllerCacheUpdated, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}reads {ids(event.isr)} v{event.zk_version}"
    return EventText(event, CONTROLLER, text, event.why, Level.STORY, "metadata")


@describes(e.BrokerChange)
def _broker_change(event: e.BrokerChange, on: Scene) -> EventText:
    changes = (("new", event.added), ("dead", event.deleted), ("bounced", event.bounced))
    text = ", ".join(f"{what} {ids(who)}" for what, who in changes if who) or "no change"
    return EventText(event, CONTROLLER, f"brokers: {text}", f"live {ids(event.live)}", tone="life")


@describes(e.PartitionStateChanged)
def _partition_state(event: e.PartitionStateChanged, on: Scene) -> EventText:
    steps = (
        f"{event.from_state.removesuffix('Partition')} → {event.to_state.removesuffix('Partition')}"
    )
    level = Level.STORY if "Offline" in steps else Level.TRAFFIC
    return EventText(event, CONTROLLER, f"{on.name(event.partition)}{steps}", "", level)


@describes(e.ReplicaStateChanged)
def _replica_state(event: e.ReplicaStateChanged, on: Scene) -> EventText:
    steps = f"{event.from_state.removesuffix('Replica')} → {event.to_state.removesuffix('Replica')}"
    text = f"{on.name(event.partition)}replica {event.replica} {steps}"
    return EventText(event, CONTROLLER, text, "", Level.TRAFFIC)


@describes(e.ReplicasOffline)
def _replicas_offline(event: e.ReplicasOffline, on: Scene) -> EventText:
    named = ", ".join(map(str, event.partitions))
    return EventText(event, CONTROLLER, f"replicas of {event.replica} are offline", named)


@describes(e.ControlRequestSent)
def _sent(event: e.ControlRequestSent, on: Scene) -> EventText:
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    level = Level.STORY if event.attempt > 1 else Level.TRAFFIC
    text = f"{event.request} to {event.to}{again}"
    return EventText(event, CONTROLLER, text, "", level, "refused" if again else "plain")


@describes(e.IsrChangeCleared)
def _cleared(event: e.IsrChangeCleared, on: Scene) -> EventText:
    text = f"{len(event.paths)} notification{'s' * (len(event.paths) != 1)} deleted"
    return EventText(event, CONTROLLER, text, "", Level.TRAFFIC, "notice")


# -- clients ---------------------------------------------------------------------------------------


@describes(e.RecordsProduced)
def _produced(event: e.RecordsProduced, on: Scene) -> EventText:
    good = event.result == "ok"
    what = f"{event.count} record{'s' * (event.count != 1)}"
    where = f" from offset {event.base_offset}" if good else ""
    text = f"{on.name(event.partition)}{what} {'acknowledged' if good else event.result}{where}"
    level, tone = (Level.DETAIL, "plain") if good else (Level.STORY, "refused")
    return EventText(event, CLIENTS, text, f"acks {event.acks}", level, tone)


@describes(e.RecordsConsumed)
def _consumed(event: e.RecordsConsumed, on: Scene) -> EventText:
    text = f"{on.name(event.partition)}reads {event.from_offset} to {event.to_offset}"
    return EventText(event, CLIENTS, text, f"HW {event.hw}", Level.DETAIL)
