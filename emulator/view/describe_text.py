"""A moment of a run as text for a terminal, like `kafka-topics --describe`.

Owns the texts and columns, and which partitions are shown in full; every fact comes from
`describe`. `≠` marks values that differ from ZooKeeper's (or, for offsets, from the leader's).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from emulator.trace.state.processes import DEAD, UP
from emulator.trace.values import TopicPartition
from emulator.view.describe import (
    DescribedBroker,
    DescribedPartition,
    Description,
    Replica,
    View,
)
from emulator.view.event_text import span

IN_FULL = 6
"""Up to this many partitions are shown with all their views; of more, at most this many of those
with differences."""
LISTED = 40
MARK = " ≠"
OTHERWISE, QUIET = "bold yellow", "dim"
_VIEW = ("leader", "leader_epoch", "controller_epoch", "zk_version", "replicas", "isr", "osr")
_VIEW_TITLES = ("leader", "epoch", "ctrl epoch", "zkVersion", "AR", "ISR", "OSR")


def render_description(
    description: Description, *, only: TopicPartition | None = None, fetchers: bool = False
) -> RenderableType:
    """A rich renderable: the cluster, then partitions or fetcher threads."""
    brokers = ", ".join(_broker(one) for one in description.brokers) or "none"
    at = f"{description.at_ms / 1000:.3f} s"
    head = Text.assemble((at, "bold"), f"  brokers {brokers}")
    # The controller, and brokers that wrongly believe they are the controller.
    who = "none" if description.controller is None else f"broker {description.controller}"
    controllers = Text(f"controller: {who} in ZooKeeper, epoch {description.controller_epoch}")
    for one in description.brokers:
        if one.controller_epoch is not None and one.broker != description.controller:
            claim = f"; broker {one.broker} believes it is, epoch {one.controller_epoch}{MARK}"
            controllers.append(claim, OTHERWISE)
    body = _fetchers(description, only) if fetchers else _partitions(description, only)
    return Group(head, controllers, *body)


def _broker(one: DescribedBroker) -> str:
    notes: list[str] = [one.process] if one.process not in (None, UP) else []
    if one.process != DEAD and one.broker_epoch is None:
        notes.append("not registered")
    if one.process == DEAD and one.broker_epoch is not None:
        notes.append("still registered")
    return f"{one.broker} ({', '.join(notes)})" if notes else str(one.broker)


# -- partitions ------------------------------------------------------------------------------------


def _partitions(description: Description, only: TopicPartition | None) -> Iterator[RenderableType]:
    chosen = [one for one in description.partitions if only in (None, one.partition)]
    several = chosen if len(chosen) <= IN_FULL else [one for one in chosen if not one.agrees]
    in_full = {one.partition for one in several[:IN_FULL]}
    for topic in description.topics:
        of_topic = [one for one in chosen if one.partition.topic == topic.topic]
        if not of_topic:
            continue
        config = ",".join(f"{key}={value}" for key, value in topic.config.items())
        yield Text(
            f"\nTopic: {topic.topic}  PartitionCount: {topic.partitions}  "
            f"ReplicationFactor: {topic.replication}  Configs: {config}",
            style="bold",
        )
        for one in of_topic[:LISTED]:
            yield from _partition(one, in_full=one.partition in in_full)
        if len(of_topic) > LISTED:
            yield Text(f"  and {len(of_topic) - LISTED} more", style=QUIET)
    known = {topic.topic for topic in description.topics}
    for one in chosen:
        if one.partition.topic not in known:
            yield from _partition(one, in_full=one.partition in in_full)
    brief = [one for one in chosen if one.partition not in in_full]
    if brief:
        differ = sum(not one.agrees for one in brief)
        more = f", {differ} with differing views" if differ else ", all views agree"
        yield Text(
            f"\n{len(brief)} partitions summarized{more}: --partition NAME shows one", style=QUIET
        )


def _partition(one: DescribedPartition, *, in_full: bool) -> Iterator[RenderableType]:
    truth = one.views[0] if one.views and one.views[0].of == "ZooKeeper" else None
    line = Text(f"  Topic: {one.partition.topic}  Partition: {one.partition.partition}  ")
    if truth is None:
        line.append(f"no state znode{MARK}", OTHERWISE)
    else:
        line.append(f"Leader: {_leader(truth)}  Replicas: {_ids(truth.replicas)}  ")
        line.append(f"Isr: {_ids(truth.isr)}  Osr: {_ids(truth.osr)}")
        line.append("" if one.agrees else f"  {MARK.strip()}", OTHERWISE)
    yield line
    if not in_full:
        return
    views = _grid(("", *_VIEW_TITLES))
    for view in one.views:
        name = view.of if view.broker is None else f"{view.of} {view.broker}"
        if view.proposed is not None:
            name += f" proposes {_ids(view.proposed)}"
        cells = [_leader(view), *(_known(getattr(view, field)) for field in _VIEW[1:])]
        marked = [
            _marked(cell, differs=field in view.differs)
            for field, cell in zip(_VIEW, cells, strict=True)
        ]
        views.add_row(name, *marked)
    yield Padding(views, (0, 0, 0, 4))
    replicas = _grid(("replica", "role", "LEO", "leader sees", "HW", "leader's HW"))
    for replica in one.replicas:
        role = "no replica"
        if replica.role != "none":
            follows = replica.role == "follower"
            role = f"follows {replica.leader}" if follows else replica.role
            role += f", epoch {replica.leader_epoch}"
        if replica.process not in (None, UP):
            role += f" ({replica.process})"
        replicas.add_row(
            str(replica.broker),
            role,
            _known(replica.leo),
            _leaders(replica, "leo", replica.leader_sees_leo),
            _known(replica.hw),
            _leaders(replica, "hw", replica.leader_hw),
        )
    yield Padding(replicas, (0, 0, 1, 4))


def _leader(view: View) -> str:
    return "none" if view.leader < 0 else str(view.leader)


def _grid(titles: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 2))
    for title in titles:
        # In a narrow terminal, lists of brokers wrap to two lines instead of being cut off.
        is_list = title in ("AR", "ISR", "OSR")
        justify: Literal["left", "right"] = "right" if title in ("LEO", "HW") else "left"
        table.add_column(no_wrap=not is_list, overflow="fold", justify=justify)
    table.add_row(*(Text(title, style=QUIET) for title in titles))
    return table


def _marked(text: str, *, differs: bool) -> Text:
    return Text(text + MARK, style=OTHERWISE) if differs else Text(text)


def _known(value: object) -> str:
    if isinstance(value, tuple):
        return _ids(value)
    return "?" if value is None else str(value)


def _ids(brokers: tuple[int, ...] | None) -> str:
    if brokers is None:
        return "?"
    return ",".join(map(str, brokers)) or "-"


def _leaders(one: Replica, field: str, value: int | None) -> Text:
    """The leader's view of a replica's offset; it has none of its own."""
    if one.role == "leader" and value is None:
        return Text("")
    return _marked(_known(value), differs=field in one.differs)


# -- fetchers --------------------------------------------------------------------------------------


def _fetchers(description: Description, only: TopicPartition | None) -> Iterator[RenderableType]:
    for broker in description.brokers:
        threads = [one for one in description.fetchers if one.broker == broker.broker]
        waiting = [n for n in description.waiting.get(broker.broker, []) if only in (None, n)]
        count = f"{len(threads)} fetcher thread{'s' * (len(threads) != 1)}"
        yield Text(f"\nbroker {_broker(broker)}: {count}", style="bold")
        for one in threads:
            last = "no fetch sent yet"
            if one.sent_ms_ago is not None:
                ago = f"last fetch {span(one.sent_ms_ago * 1000)} ago"
                last = f"session epoch {one.session_epoch}, {ago}"
            number = f"{len(one.partitions)} partition{'s' * (len(one.partitions) != 1)}"
            yield Text(f"  {one.thread}: {number}, {last}")
            chosen = [part for part in one.partitions if only in (None, part.partition)]
            for part in chosen[:LISTED]:
                text = Text(f"    {part.partition} from offset {part.offset}")
                if part.delayed_ms:
                    delay = f", delayed for another {span(part.delayed_ms * 1000)}: {part.reason}"
                    text.append(delay, OTHERWISE)
                yield text
            if len(chosen) > LISTED:
                more = _names([part.partition for part in chosen[LISTED:]])
                yield Text(f"    and {more}", style=QUIET)
        if waiting:
            yield Text(f"  not fetched yet: {_names(waiting)}", style=OTHERWISE)


def _names(partitions: list[TopicPartition]) -> str:
    """`orders-0,1,2 clicks-4`."""
    topics: dict[str, list[str]] = {}
    for one in partitions:
        topics.setdefault(one.topic, []).append(str(one.partition))
    return " ".join(f"{topic}-{','.join(numbers)}" for topic, numbers in topics.items())
