"""The story of one ISR change as a dozen lines for a terminal.

Owns the sentences; every fact and number in them comes from `why`, and none is worked out here.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from emulator.view.lanes import STYLES
from emulator.view.telling import ids, span
from emulator.view.why import (
    AT_LAST_MS,
    LAG,
    MESSAGES,
    QUIET_MS,
    TICK_MS,
    Follower,
    Hold,
    Leg,
    Shown,
    Story,
)
from emulator.view.wording import node

HOLDS_LISTED = 3


def render_why(story: Story) -> RenderableType:
    """The story as a rich renderable."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in lines(story):
        table.add_row(name, text)
    return Group(
        Text(headline(story), style=STYLES.get(story.change, "bold")), Padding(table, (0, 2))
    )


def headline(story: Story) -> str:
    """What changed, who did it, when."""
    who = f"controller {story.by}" if story.by_controller else f"leader {story.by}"
    before, now = ids(story.isr_before), ids(story.isr)
    what = {
        "created": f"created with ISR {now}, leader {story.leader}",
        "elected": f"leader {_leader(story)} → {story.leader}, ISR {before} → {now}",
        "offline": f"no leader any more (was {story.leader_before}), ISR {before} → {now}",
        "shrink": f"ISR shrinks {before} → {now}",
        "expand": f"ISR expands {before} → {now}",
    }.get(story.change, f"ISR {before} → {now}")
    when = f"leader epoch {story.leader_epoch}, {_seconds(story.at_ms)}"
    return f"{story.partition}@v{story.version}  {what}, by {who} ({when})"


def _leader(story: Story) -> str:
    """Who led before."""
    return "none" if (story.leader_before or 0) < 0 else str(story.leader_before)


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.3f} s"


def lines(story: Story) -> Iterator[tuple[str, str]]:
    """Pairs of a heading (empty: the one before goes on) and a line."""
    yield from _decision(story)
    yield from _asking(story)
    yield "write", _write(story)
    yield from _holding(story)
    yield from _reached(story)
    yield "way", _way(story)


def _decision(story: Story) -> Iterator[tuple[str, str]]:
    if story.expected_version is None:
        for place, step in enumerate(story.because):
            yield "" if place else "because", f"{_seconds(step.at_ms)}  {step.text}"
        why = f" ({story.reason})" if story.reason else ""
        yield "decided by", f"the controller itself{why}; no leader asked for it"
        if story.change == "elected" and story.leader not in story.isr_before:
            yield "unclean", f"{story.leader} was not in the ISR {ids(story.isr_before)}"
        return
    for follower in story.followers:
        yield "leader saw", _saw(story, follower)
        yield "rule", _rule(story, follower)
    for one in story.circumstances:
        since, until = _seconds(one.from_ms), _seconds(one.to_ms)
        yield "fault", f"broker {one.broker} {one.text} from {since} to {until}"


def _saw(story: Story, follower: Follower) -> str:
    at = f"LEO {follower.leo:,}" if follower.leo >= 0 else "a LEO that this trace does not tell"
    of = f" of {story.leo:,}" if story.leo is not None and story.leo >= 0 else ""
    hw = f", HW {story.hw:,}" if story.hw is not None and story.hw >= 0 else ""
    what = "caught up" if story.lag_messages_max is None else "fetched"
    late = f", last {what} {follower.behind_ms:,} ms ago" if follower.behind_ms >= 0 else ""
    return f"follower {follower.replica} at {at}{of}{hw}{late}"


def _rule(story: Story, follower: Follower) -> str:
    if story.change == "shrink":
        looks = f"looked at every {story.check_every_ms:,} ms"
        return f"{_too_late(story, follower)}: out of sync ({looks})"
    seen = f"LEO {follower.leo:,} ≥ HW {story.hw:,}" if follower.leo >= 0 else "LEO ≥ HW"
    start = " and ≥ the epoch's first offset" if story.past_epoch_start else ""
    return f"{seen}{start}: in sync (joining does not ask for {LAG})"


def _too_late(story: Story, follower: Follower) -> str:
    """The rule that it broke; before 0.9 there were two."""
    behind = (story.leo or 0) - follower.leo
    if story.lag_messages_max is not None and behind > story.lag_messages_max:
        return f"{behind:,} records behind > {MESSAGES} {story.lag_messages_max:,}"
    late = f"{follower.behind_ms:,} ms > {LAG} {story.lag_ms_max:,}"
    return f"not at the leader's LEO, and {late}" if story.stays_at_log_end else late


def _asking(story: Story) -> Iterator[tuple[str, str]]:
    """A leader that does not write itself asks the controller."""
    for one in story.asked:
        others = f" with {one.partitions - 1} other partitions" if one.partitions > 1 else ""
        again = f", attempt {one.attempt}" if one.attempt > 1 else ""
        asked = f"controller {one.controller}{others} at {_seconds(one.at_ms)}{again}"
        yield "asked", f"{asked}, {_span(one.ms)} after the decision"
    if story.asked:
        grown = "the new ISR" if story.change == "expand" else "the old ISR"
        yield "", f"pending until the answer: the high watermark waits for {grown} meanwhile"


def _write(story: Story) -> str:
    legs = {leg.to: leg for leg in story.legs}
    if story.expected_version is None:
        return f"v{story.version} at {_seconds(story.at_ms)}, fenced by /controller_epoch"
    took = _span(legs["ZooKeeper"].ms)
    text = f"expected v{story.expected_version}: v{story.version} ok, {took} after the decision"
    if story.by_controller:
        text += ", written by the controller, fenced by /controller_epoch"
    if "leader" in legs:
        text += f"; the leader knew {_span(legs['leader'].ms)} later"
    if story.refused:
        text += f" (after {story.refused} refused for a stale version)"
    return text


def _holding(story: Story) -> Iterator[tuple[str, str]]:
    if not story.holds and story.notification is None:
        return
    rule = f"tells after {QUIET_MS:,} ms without a change, or {AT_LAST_MS:,} ms after it last told"
    yield "held back", f"looks every {_span(TICK_MS)}; {rule}"
    if story.holds:
        yield "", _looks(story.holds)
    if story.later_changes:
        many = (
            f"{story.later_changes} further changes" if story.later_changes > 1 else "a later one"
        )
        yield "", f"{many} by this leader began the {QUIET_MS:,} ms anew"


def _looks(holds: list[Hold]) -> str:
    if len(holds) <= HOLDS_LISTED:
        each = (f"{_seconds(hold.at_ms)} (quiet {hold.quiet_ms:,} ms)" for hold in holds)
        return "too early at " + ", ".join(each)
    longest = max(hold.quiet_ms for hold in holds)
    first, last = _seconds(holds[0].at_ms), _seconds(holds[-1].at_ms)
    return f"too early {len(holds)} times, {first} to {last}: quiet for {longest:,} ms at most"


def _reached(story: Story) -> Iterator[tuple[str, str]]:
    if story.notification is not None:
        at = next(_seconds(leg.at_ms) for leg in story.legs if leg.to == "notification")
        yield "told", f"{node(story.notification)} at {at}: {_let_go(story)}"
    elif story.asked:
        yield "told", "by the controller: UpdateMetadata was queued before the leader was answered"
    elif story.expected_version is not None and not story.by_controller:
        ends = "the trace ends, or the leader did, before it told the controller"
        if not story.notifies:
            yield "told", "never: this version tells nobody"
        else:
            yield "told", f"never: {ends}" if story.is_over else "not yet"
    for shown in story.shown:
        yield f"broker {shown.broker}", _shown(story, shown)
    if story.never_shown:
        why = "overtaken on the way" if story.notifies else "nobody was told"
        yield "never shown", f"v{story.version} was in no broker's metadata: {why}"


def _let_go(story: Story) -> str:
    if story.quiet_ms is None:
        return "the controller is told"
    if story.quiet_ms > QUIET_MS:
        return f"quiet for {story.quiet_ms:,} ms"
    since = f"{story.since_propagation_ms or 0:,} ms ago"
    return f"quiet for {story.quiet_ms:,} ms only, but it last told {since}"


def _shown(story: Story, shown: Shown) -> str:
    old = ""
    if shown.old_version is not None:
        stale = f"{ids(shown.old_isr)} v{shown.old_version}"
        old = f"showed the old {stale} for {_span(shown.old_ms)}"
    if shown.version is None or shown.at_ms is None:
        yet = "" if story.is_over else " yet"
        return f"{old}, and nothing newer{yet}" if old else f"showed nothing{yet}"
    new = f"v{shown.version} at {_seconds(shown.at_ms)}"
    never = "" if shown.version == story.version else f" (v{story.version} never)"
    return f"{old}, then {new}{never}" if old else f"showed {new}{never}"


def _way(story: Story) -> str:
    """`decision ─4 ms→ ZooKeeper ─10.0 s→ notification …`, the brokers together."""
    stages = [leg for leg in story.legs if not leg.to.startswith("broker") and leg.to != "leader"]
    text = "decision" if story.expected_version is not None else ""
    for leg in stages:
        text += f" ─{_span(leg.ms)}→ {leg.to}" if text else leg.to
    brokers = [leg for leg in story.legs if leg.to.startswith("broker")]
    if brokers:
        names = ids(tuple(int(leg.to.removeprefix("broker ")) for leg in brokers))
        total = _span(max(leg.at_ms for leg in brokers) - story.at_ms)
        text += f" ─{_range(brokers)}→ metadata of {names}; {total} in all"
    return text


def _range(legs: list[Leg]) -> str:
    low, high = min(leg.ms for leg in legs), max(leg.ms for leg in legs)
    return _span(low) if _span(low) == _span(high) else f"{_span(low)} to {_span(high)}"


def _span(ms: float) -> str:
    """Milliseconds for people, with a decimal below ten."""
    return f"{ms:.1f} ms" if 0 < ms < 10 and ms != int(ms) else span(round(ms * 1000))
