"""The explanation of one ISR change as a dozen lines for a terminal.

Owns the sentences; every fact and number comes from `why`.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from emulator.view.event_text import exact_span, ids, seconds, span
from emulator.view.lanes import STYLES
from emulator.view.why import AT_LAST_MS, LAG, MESSAGES, QUIET_MS, TICK_MS, Follower, Shown, Story
from emulator.view.wording import node

HOLDS_LISTED = 3


def render_why(story: Story) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in lines(story):
        table.add_row(name, text)
    return Group(
        Text(headline(story), style=STYLES.get(story.change, "bold")), Padding(table, (0, 2))
    )


def headline(story: Story) -> str:
    """The change, its author and its time."""
    who = f"controller {story.by}" if story.by_controller else f"leader {story.by}"
    before, now = ids(story.isr_before), ids(story.isr)
    old_leader = "none" if (story.leader_before or 0) < 0 else str(story.leader_before)
    what = {
        "created": f"created with ISR {now}, leader {story.leader}",
        "elected": f"leader {old_leader} → {story.leader}, ISR {before} → {now}",
        "offline": f"no leader (was {story.leader_before}), ISR {before} → {now}",
        "shrink": f"ISR shrinks {before} → {now}",
        "expand": f"ISR expands {before} → {now}",
    }.get(story.change, f"ISR {before} → {now}")
    when = f"leader epoch {story.leader_epoch}, {seconds(story.at_ms)}"
    return f"{story.partition}@v{story.version}  {what}, by {who} ({when})"


def lines(story: Story) -> Iterator[tuple[str, str]]:
    """Pairs of a heading (empty: the previous one continues) and a line."""
    if story.expected_version is None:
        yield from _controller_decision(story)
    else:
        yield from _leader_decision(story)
    yield from _propagation(story)
    for shown in story.shown:
        yield f"broker {shown.broker}", _shown(story, shown)
    if story.never_shown:
        versions = (one.version for one in story.shown)
        newer = [version for version in versions if version and version > story.version]
        if not story.notifies:
            why = "no broker was notified"
        else:
            why = f"v{min(newer)} superseded it" if newer else "the run ended first"
        yield "never shown", f"v{story.version} never reached any broker's metadata: {why}"
    # `decision ─4 ms→ ZooKeeper ─10.0 s→ notification …`, with all brokers as one step.
    path = "decision" if story.expected_version is not None else ""
    brokers = [hop for hop in story.legs if hop.to.startswith("broker")]
    for hop in story.legs:
        if hop not in brokers and hop.to != "leader":
            path += f" ─{_span(hop.ms)}→ {hop.to}" if path else hop.to
    if brokers:
        names = ids(tuple(int(hop.to.removeprefix("broker ")) for hop in brokers))
        low, high = (_span(of(hop.ms for hop in brokers)) for of in (min, max))
        total = _span(max(hop.at_ms for hop in brokers) - story.at_ms)
        took = low if low == high else f"{low} to {high}"
        path += f" ─{took}→ metadata of {names}; {total} in all"
    yield "path", path


def _controller_decision(story: Story) -> Iterator[tuple[str, str]]:
    for place, step in enumerate(story.causes):
        yield "" if place else "cause", f"{seconds(step.at_ms)}  {step.text}"
    why = f" ({story.reason})" if story.reason else ""
    yield "decided by", f"the controller{why}; no leader requested it"
    if story.change == "elected" and story.leader not in story.isr_before:
        yield "unclean", f"{story.leader} was not in the ISR {ids(story.isr_before)}"
    yield "write", f"v{story.version} at {seconds(story.at_ms)}, fenced by /controller_epoch"


def _leader_decision(story: Story) -> Iterator[tuple[str, str]]:
    for follower in story.followers:
        at = f"LEO {follower.leo:,}" if follower.leo >= 0 else "LEO ?"
        of = f" of {story.leo:,}" if story.leo is not None and story.leo >= 0 else ""
        hw = f", HW {story.hw:,}" if story.hw is not None and story.hw >= 0 else ""
        what = "caught up" if story.lag_messages_max is None else "fetched"
        late = (
            f", last {what} {exact_span(follower.behind_ms)} ago" if follower.behind_ms >= 0 else ""
        )
        yield "leader saw", f"follower {follower.replica} at {at}{of}{hw}{late}"
        yield "rule", _rule(story, follower)
    for fault in story.circumstances:
        since, until = seconds(fault.from_ms), seconds(fault.to_ms)
        yield "fault", f"broker {fault.broker} {fault.text} from {since} to {until}"
    # AlterIsr: the leader asks the controller to write.
    for one in story.sendings:
        more = one.partitions - 1
        others = f" with {more} other partition{'s' * (more > 1)}" if more else ""
        again = f", attempt {one.attempt}" if one.attempt > 1 else ""
        query = f"to controller {one.controller}{others} at {seconds(one.at_ms)}{again}"
        yield "AlterIsr", f"{query}, {_span(one.ms)} after the decision"
    if story.sendings:
        # KIP-497: until the response, the leader uses the larger of both ISRs.
        larger = "the new ISR" if story.change == "expand" else "the old ISR"
        yield "", f"pending until the response: meanwhile the high watermark waits for {larger}"
    legs = {hop.to: hop for hop in story.legs}
    took = _span(legs["ZooKeeper"].ms)
    text = f"expected v{story.expected_version}: v{story.version} ok, {took} after the decision"
    if story.by_controller:
        text += ", written by the controller, fenced by /controller_epoch"
    if "leader" in legs:
        text += f"; acknowledged to the leader {_span(legs['leader'].ms)} later"
    if story.refused:
        text += f" (after {story.refused} refused for a stale version)"
    yield "write", text


def _rule(story: Story, follower: Follower) -> str:
    """The rule that the follower violated, or satisfies again; before 0.9 there were two."""
    if story.change != "shrink":
        seen = f"LEO {follower.leo:,} ≥ HW {story.hw:,}" if follower.leo >= 0 else "LEO ≥ HW"
        start = " and ≥ the epoch's first offset" if story.past_epoch_start else ""
        return f"{seen}{start}: in sync (joining does not depend on {LAG})"
    behind = (story.leo or 0) - follower.leo
    if story.lag_messages_max is not None and behind > story.lag_messages_max:
        broken = f"{behind:,} records behind > {MESSAGES} {story.lag_messages_max:,}"
    else:
        broken = f"{exact_span(follower.behind_ms)} > {LAG} {exact_span(story.lag_ms_max or 0)}"
        if story.stays_at_log_end:
            broken = f"not at the leader's LEO, and {broken}"
    return f"{broken}: out of sync (checked every {exact_span(story.check_every_ms or 0)})"


def _propagation(story: Story) -> Iterator[tuple[str, str]]:
    """How the controller learned of the change."""
    holds = story.holds
    if holds or story.notification is not None:
        rule = (
            f"the controller is notified after {_span(QUIET_MS)} without changes,"
            f" or {_span(AT_LAST_MS)} after the last notification"
        )
        yield "held back", f"checked every {_span(TICK_MS)}; {rule}"
        if len(holds) > HOLDS_LISTED:
            longest = max(hold.quiet_ms for hold in holds)
            when = f"{seconds(holds[0].at_ms)} to {seconds(holds[-1].at_ms)}"
            yield "", f"too early {len(holds)} times, {when}: quiet for at most {_span(longest)}"
        elif holds:
            each = (f"{seconds(hold.at_ms)} (quiet for {_span(hold.quiet_ms)})" for hold in holds)
            yield "", f"too early at {', '.join(each)}"
        if story.later_changes:
            many = (
                f"{story.later_changes} later changes"
                if story.later_changes > 1
                else "a later change"
            )
            yield "", f"{many} by the same leader restarted the {_span(QUIET_MS)} wait"
    if story.notification is not None:
        at = next(seconds(hop.at_ms) for hop in story.legs if hop.to == "notification")
        if story.quiet_ms is None:
            why = "the controller is notified"
        elif story.quiet_ms > QUIET_MS:
            why = f"quiet for {_span(story.quiet_ms)}"
        else:
            since = f"{_span(story.since_propagation_ms or 0)} ago"
            why = f"quiet for only {_span(story.quiet_ms)}, but the last notification was {since}"
        yield "notified", f"{node(story.notification)} at {at}: {why}"
    elif story.sendings:
        yield (
            "notified",
            "by the controller: it queued UpdateMetadata before it answered the leader",
        )
    elif story.expected_version is not None and not story.by_controller:
        if not story.notifies:
            yield "notified", "never: this version of Kafka sends no notification"
        elif story.is_over:
            why = "the run or the leader ended before the notification"
            yield "notified", f"never: {why}"
        else:
            yield "notified", "not yet"


def _shown(story: Story, shown: Shown) -> str:
    old = ""
    if shown.old_version is not None:
        stale = f"{ids(shown.old_isr)} v{shown.old_version}"
        old = f"showed the old {stale} for {_span(shown.old_ms)}"
    if shown.version is None or shown.at_ms is None:
        yet = "" if story.is_over else " yet"
        return f"{old}, and nothing newer{yet}" if old else f"showed nothing{yet}"
    new = f"v{shown.version} at {seconds(shown.at_ms)}"
    never = "" if shown.version == story.version else f" (v{story.version} never)"
    return f"{old}, then {new}{never}" if old else f"showed {new}{never}"


def _span(ms: float) -> str:
    return span(ms * 1000)
