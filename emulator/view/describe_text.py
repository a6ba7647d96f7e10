"""A moment of a run as a terminal shows it, in the manner of `kafka-topics --describe`.

Owns the words and columns, and which partitions are shown in full; every fact comes from
`describe`. `≠` stands behind what ZooKeeper (or, for offsets, the leader) has otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from emulator.trace.state.processes import DEAD, UP
from emulator.trace.values import TopicPartition
from emulator.view.describe import (
    DescribedBroker,
    DescribedFetcher,
    DescribedPartition,
    Description,
    FetchedPartition,
    Replica,
    View,
)

IN_FULL = 6
"""So many partitions are shown with all their views; of more, only those that somebody has
otherwise, and of these no more either."""
LISTED = 40
MARK = " ≠"
OTHERWISE, QUIET = "bold yellow", "dim"
_VIEW = ("leader", "leader_epoch", "controller_epoch", "zk_version", "replicas", "isr", "osr")
_VIEW_TITLES = ("leader", "epoch", "ctrl epoch", "zkVersion", "AR", "ISR", "OSR")


def render_description(
    found: Description, *, only: TopicPartition | None = None, fetchers: bool = False
) -> RenderableType:
    """The whole as a rich renderable: the cluster, then partitions, or fetcher threads."""
    parts: list[RenderableType] = [_headline(found), *_controllers(found)]
    if fetchers:
        return Group(*parts, *_fetchers(found, only))
    return Group(*parts, *_partitions(found, only))


# -- the cluster -----------------------------------------------------------------------------------


def _headline(found: Description) -> Text:
    brokers = ", ".join(_broker(one) for one in found.brokers) or "none"
    return Text.assemble((f"{found.at_ms / 1000:.3f} s", "bold"), f"  brokers {brokers}")


def _broker(one: DescribedBroker) -> str:
    notes: list[str] = [one.process] if one.process not in (None, UP) else []
    if one.process != DEAD and one.broker_epoch is None:
        notes.append("not registered")
    if one.process == DEAD and one.broker_epoch is not None:
        notes.append("still registered")
    return f"{one.broker} ({', '.join(notes)})" if notes else str(one.broker)


def _controllers(found: Description) -> Iterator[Text]:
    """Who is it, and who thinks to be it."""
    registered = "nobody" if found.controller is None else f"broker {found.controller}"
    text = Text(f"controller: {registered} in ZooKeeper, epoch {found.controller_epoch}")
    for one in found.brokers:
        if one.controller_epoch is not None and one.broker != found.controller:
            said = f"; broker {one.broker} thinks it is, epoch {one.controller_epoch}{MARK}"
            text.append(said, OTHERWISE)
    yield text


# -- partitions ------------------------------------------------------------------------------------


def _partitions(found: Description, only: TopicPartition | None) -> Iterator[RenderableType]:
    chosen = [one for one in found.partitions if only in (None, one.partition)]
    in_full = _in_full(chosen)
    for topic in found.topics:
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
    known = {topic.topic for topic in found.topics}
    for one in chosen:
        if one.partition.topic not in known:
            yield from _partition(one, in_full=one.partition in in_full)
    yield from _left_out(chosen, in_full)


def _in_full(chosen: list[DescribedPartition]) -> set[TopicPartition]:
    several = chosen if len(chosen) <= IN_FULL else [one for one in chosen if not one.agrees]
    return {one.partition for one in several[:IN_FULL]}


def _left_out(chosen: list[DescribedPartition], in_full: set[TopicPartition]) -> Iterator[Text]:
    rest = [one for one in chosen if one.partition not in in_full]
    if not rest:
        return
    differ = sum(not one.agrees for one in rest)
    more = f", {differ} of them with views that differ" if differ else ", in which all agree"
    yield Text(f"\n{len(rest)} not in full{more}: --partition NAME shows one", style=QUIET)


def _partition(one: DescribedPartition, *, in_full: bool) -> Iterator[RenderableType]:
    truth = one.views[0] if one.views and one.views[0].of == "ZooKeeper" else None
    line = Text(f"  Topic: {one.partition.topic}  Partition: {one.partition.partition}  ")
    if truth is None:
        line.append(f"in no znode{MARK}", OTHERWISE)
    else:
        line.append(f"Leader: {_leader(truth)}  Replicas: {_ids(truth.replicas)}  ")
        line.append(f"Isr: {_ids(truth.isr)}  Osr: {_ids(truth.osr)}")
        line.append("" if one.agrees else f"  {MARK.strip()}", OTHERWISE)
    yield line
    if in_full:
        yield Padding(_view_table(one.views), (0, 0, 0, 4))
        yield Padding(_replica_table(one.replicas), (0, 0, 1, 4))


def _leader(view: View) -> str:
    return "none" if view.leader < 0 else str(view.leader)


def _grid(titles: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 2))
    for title in titles:
        table.add_column(no_wrap=True, justify="right" if title in ("LEO", "HW") else "left")
    table.add_row(*(Text(title, style=QUIET) for title in titles))
    return table


def _view_table(views: list[View]) -> Table:
    table = _grid(("", *_VIEW_TITLES))
    for view in views:
        name = view.of if view.broker is None else f"{view.of} {view.broker}"
        if view.proposed is not None:
            name += f" asks {_ids(view.proposed)}"
        table.add_row(name, *(_cell(view, field) for field in _VIEW))
    return table


def _cell(view: View, field: str) -> Text:
    value = getattr(view, field)
    text = _leader(view) if field == "leader" else _said(value)
    return _marked(text, differs=field in view.differs)


def _marked(text: str, *, differs: bool) -> Text:
    return Text(text + MARK, style=OTHERWISE) if differs else Text(text)


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return _ids(value)
    return "?" if value is None else str(value)


def _ids(brokers: tuple[int, ...] | None) -> str:
    if brokers is None:
        return "?"
    return ",".join(map(str, brokers)) or "-"


def _replica_table(replicas: list[Replica]) -> Table:
    table = _grid(("replica", "role", "LEO", "leader sees", "HW", "leader's HW"))
    for one in replicas:
        table.add_row(
            str(one.broker),
            _role(one),
            _said(one.leo),
            _theirs(one, "leo", one.leader_sees_leo),
            _said(one.hw),
            _theirs(one, "hw", one.leader_hw),
        )
    return table


def _role(one: Replica) -> str:
    role = one.role if one.role != "follower" else f"follows {one.leader}"
    role = "hosts none" if one.role == "none" else f"{role}, epoch {one.leader_epoch}"
    return role if one.process in (None, UP) else f"{role} ({one.process})"


def _theirs(one: Replica, field: str, value: int | None) -> Text:
    if one.role == "leader" and value is None:
        return Text("")
    return _marked(_said(value), differs=field in one.differs)


# -- fetchers --------------------------------------------------------------------------------------


def _fetchers(found: Description, only: TopicPartition | None) -> Iterator[RenderableType]:
    for broker in found.brokers:
        threads = [one for one in found.fetchers if one.broker == broker.broker]
        waiting = [n for n in found.waiting.get(broker.broker, []) if only in (None, n)]
        count = f"{len(threads)} fetcher thread{'s' * (len(threads) != 1)}"
        yield Text(f"\nbroker {_broker(broker)}: {count}", style="bold")
        for one in threads:
            yield from _fetcher(one, only)
        if waiting:
            yield Text(f"  not asked for yet: {_names(waiting)}", style=OTHERWISE)


def _fetcher(one: DescribedFetcher, only: TopicPartition | None) -> Iterator[Text]:
    asked = "has not asked yet"
    if one.asked_ms_ago is not None:
        asked = f"session epoch {one.session_epoch}, last asked {one.asked_ms_ago:,.1f} ms ago"
    chosen = [part for part in one.partitions if only in (None, part.partition)]
    yield Text(
        f"  {one.thread}  from broker {one.leader}, {len(one.partitions)} partitions, {asked}"
    )
    for part in chosen[:LISTED]:
        yield _fetched(part)
    if len(chosen) > LISTED:
        yield Text(f"    and {_names([part.partition for part in chosen[LISTED:]])}", style=QUIET)


def _fetched(part: FetchedPartition) -> Text:
    text = Text(f"    {part.partition} from offset {part.offset}")
    if part.delayed_ms:
        said = f", left out for {part.delayed_ms:,.0f} ms more: {part.reason}"
        text.append(said, OTHERWISE)
    return text


def _names(partitions: list[TopicPartition]) -> str:
    """`orders-0,1,2 clicks-4`."""
    topics: dict[str, list[str]] = {}
    for one in partitions:
        topics.setdefault(one.topic, []).append(str(one.partition))
    return " ".join(f"{topic}-{','.join(numbers)}" for topic, numbers in topics.items())
