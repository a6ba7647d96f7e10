"""One run of a search, played group by group and compared with the recording meanwhile.

A *segment* lies between two actions; a *group* is one segment, or several if their actions follow
each other closely. A long segment is several groups, each from a moment of it on: what is right
until there is played once. Owns the moments at which a run in progress is judged: 250 ms after the
action, when the recording's next entry must have occurred, and at the end of the group. The first
contradiction ends it. Only the judgement reads the recording: the run itself depends only on seeds.
This module must not know how seeds are chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from emulator.conformance.criteria import AGREED, Part
from emulator.conformance.export import export
from emulator.conformance.player import Script, play_options
from emulator.conformance.recording import Recording
from emulator.kernel.rng import Choice
from emulator.runs.session import Session
from emulator.search.guided.candidates import Moment
from emulator.search.guided.choices import record_streams
from emulator.search.guided.partial import Contradiction, RealSide, RunningJudgement
from emulator.search.guided.prefix import GRACE_MS, GRACE_OF_CREATION_MS, UNTIMED_MS
from emulator.trace import events
from emulator.trace.events import AnyEvent

LONG_MS = 2000
"""So long after a group's last action, the next one begins within the same segment."""
_OFF_US = 137
"""Groups within a segment begin a little after the millisecond at which the one before ended: no
client's period ends there."""
_THIN_MS = 60
"""Of two moments closer than this, the earlier is left out, because the later one shows the
same."""
_CREATIONS = ("create_topic", "add_partitions")
_CREATION_MS = 1000
_NEEDED_ACTIONS = ("up", "produce", "start")
"""Actions that the export needs for later events."""


@dataclass(frozen=True)
class SegmentGroup:
    """Segments that are drawn and judged together."""

    segments: range
    moments: tuple[int, ...]
    """The moments of judgement, in milliseconds since `up`; the last one is the group's end."""
    about: tuple[int, ...] = ()
    """The target brokers of its actions."""
    ends_for: tuple[int, ...] = ()
    """The target brokers of the next group's actions."""
    since_us: int | None = None
    """The moment of its segment at which it begins; None: with its first action."""
    is_divided: bool = False
    """Whether another group follows in its segment."""
    grace_ms: int = GRACE_MS
    """For how long only one side may have an entry."""

    @property
    def since(self) -> str:
        """The moment as a choice names it."""
        return "" if self.since_us is None else str(self.since_us)

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(f"broker-{broker}" for broker in self.about)


class _Contradicted(BaseException):
    """Ends the kernel's run from the moment of judgement."""

    def __init__(self, contradiction: Contradiction) -> None:
        self.contradiction = contradiction


def groups_of(script: Script, real: RealSide) -> list[SegmentGroup]:
    """All groups, from the boot (segment 0) to the end."""
    steps = script.scenario.steps
    ends = [step.at_us // 1000 for step in steps]
    ends.append(script.scenario.duration_us // 1000)
    creates = [False, *(step.action.name in _CREATIONS for step in steps)]
    lanes = (lane for point in AGREED for lane in real.course.lanes[point].values())
    due = sorted({t + GRACE_MS + 1 for lane in lanes for t, _ in lane})
    ranges, first = [], 0
    for segment, end in enumerate(ends):
        enough_ms = _CREATION_MS if creates[segment] else GRACE_MS
        is_short = 0 < segment < len(ends) - 1 and end - ends[segment - 1] < enough_ms
        if not is_short:
            ranges.append(range(first, segment + 1))
            first = segment + 1
    about: list[tuple[int, ...]] = []
    for group in ranges:
        actions = (steps[segment - 1].action for segment in group if segment)
        brokers = (getattr(action, "broker", None) for action in actions)
        about.append(tuple(broker for broker in brokers if isinstance(broker, int)))
    about.append(())
    return [
        part
        for number, group in enumerate(ranges)
        for part in _divided(
            SegmentGroup(
                group,
                _moments(group, ends, creates, due),
                about[number],
                about[number + 1],
                grace_ms=GRACE_OF_CREATION_MS if any(creates[s] for s in group) else GRACE_MS,
            ),
            ends,
        )
    ]


def group_at(groups: Sequence[SegmentGroup], ms: int) -> int:
    """The group in which this moment of the recording is."""
    return next((n for n, group in enumerate(groups) if ms < group.moments[-1]), len(groups) - 1)


def _divided(group: SegmentGroup, ends: list[int]) -> Iterator[SegmentGroup]:
    """The group in parts of LONG_MS after its last action; the last part has 0.5 to 1.5 of it."""
    if len(group.moments) == 1:
        # A boot or a creation is judged only at its end; a short group need not be divided.
        yield group
        return
    last = group.segments[-1]
    since_ms = began_ms = ends[last - 1]
    cuts = range(began_ms + LONG_MS, group.moments[-1] - LONG_MS // 2, LONG_MS)
    if not cuts:
        yield group
        return
    for cut_ms in (*cuts, group.moments[-1]):
        is_last, is_first = cut_ms == group.moments[-1], since_ms == began_ms
        inside = tuple(ms for ms in group.moments if since_ms < ms < cut_ms)
        yield SegmentGroup(
            group.segments if is_first else range(last, last + 1),
            (*inside, cut_ms),
            group.about if is_first else (),
            group.ends_for if is_last else (),
            None if is_first else since_ms * 1000 + _OFF_US,
            not is_last,
        )
        since_ms = cut_ms


def _moments(group: range, ends: list[int], creates: list[bool], due: list[int]) -> tuple[int, ...]:
    """A boot or a creation is judged only at its end: the delays of cold brokers vary by more than
    the grace."""
    end = ends[group[-1]]
    if not group[0] or any(creates[segment] for segment in group):
        return (end,)
    start = ends[group[-1] - 1]
    inside = sorted({ms for ms in (start + GRACE_MS, *due) if start < ms < end})
    thinned = [ms for ms, later in pairwise([*inside, end]) if later - ms > _THIN_MS]
    return (*thinned, end)


def _stop_if(contradiction: Contradiction | None) -> None:
    """Raises _Contradicted."""
    if contradiction is not None:
        raise _Contradicted(contradiction)


class GuidedRun:
    """A run in progress, compared with the recording."""

    def __init__(
        self,
        script: Script,
        real: RealSide,
        groups: list[SegmentGroup],
        seed: int,
        grace_ms: int = GRACE_MS,
    ) -> None:
        """`grace_ms`: for at least how long only one side may have an entry."""
        self.script, self.groups, self.seed = script, groups, seed
        self._grace_ms = grace_ms
        self.choices: dict[Choice, int] = {}
        self.played = 0
        """The number of groups played so far."""
        self._exported = 0
        self._needed: list[events.ActionApplied] = []
        self._partial = RunningJudgement(real)

    @property
    def over(self) -> bool:
        return self.played == len(self.groups)

    @property
    def group(self) -> SegmentGroup:
        """The next group."""
        return self.groups[self.played]

    def play_next_group(self, candidate: Mapping[Choice, int]) -> Contradiction | None:
        """Play the next group with these choices, up to its first contradiction."""
        self.choices |= candidate
        group = self.group
        try:
            self._play(group)
            self._judge(group.moments[-1], group.ends_for)
        except _Contradicted as contradicted:
            return contradicted.contradiction
        self.played += 1
        return None

    def want(self, part: Part | None) -> None:
        """From now on this part must match, too."""
        self._partial.target = part

    def group_of(self, part: Part) -> int:
        """For a finished run: the group of the first difference in this part."""
        return group_at(self.groups, self._partial.first_difference_ms(part))

    def streams(self) -> list[Choice]:
        """The streams that the last group drew from."""
        return list(self._recording.streams)

    def moment(self, at_ms: int) -> Moment:
        """Where in the current segment this moment is."""
        segment = self._run.segment
        # The boot begins with the kernel's time.
        steps, up_us = self.script.scenario.steps, self._run.up_us
        began_us = steps[segment - 1].at_us if segment else -up_us
        if self.group.since_us is not None:
            began_us = self.group.since_us
        now_us = self._session.kernel.now - up_us
        return Moment(segment, began_us, min(at_ms * 1000, now_us))

    def close(self) -> None:
        """Take the world down."""
        self._session.close()

    def whole(self) -> Recording:
        """The recording of the finished run."""
        script = self.script
        return export(self._session.events, script.settings, f"seed {self.seed}", script.exits)

    def _play(self, group: SegmentGroup) -> None:
        if not group.segments[0]:
            options = play_options(self.script, self.seed, self.choices)
            self._session = Session(self.script.scenario, options, hearing="nothing")
            self._session.listeners.sink.listen(self._on_event)
            self._recording = record_streams(self._session.world, self.choices)
            self._run = self._session.run
            self._run.bring_up()
            self._run.run_to(group.moments[-1] * 1000)
            return
        self._recording.update(self.choices)
        self._recording.streams.clear()
        lane, run = self._session.kernel.world.lane("judge"), self._run
        for ms in group.moments[:-1]:
            at_us = run.up_us + ms * 1000
            lane.call_at(at_us, lambda ms=ms: self._judge(ms))  # type: ignore[misc]
        until_us = group.moments[-1] * 1000 + _OFF_US - 1 if group.is_divided else None
        if group.since_us is not None:
            run.start_streams_again(group.since_us)
            run.run_on(until_us)
            return
        for _ in group.segments[:-1]:
            run.next_segment()
        run.next_segment(until_us)

    def _on_event(self, event: AnyEvent) -> None:
        """Most draws fail within milliseconds, so each state is judged when it is written."""
        if not self._needed or type(event) is not events.ZkTransaction:
            return
        if event.path is not None and event.path.endswith("/state"):
            self._grow()
            _stop_if(self._partial.wrong_state(self._grace_ms))

    def _judge(self, until_ms: int, stopping: Collection[int] = ()) -> None:
        self._grow()
        grace_ms = max(self._grace_ms, self.group.grace_ms)
        if grace_ms == UNTIMED_MS:
            stopping = ()
        # A lost race in the targeted part must show in its own group, where it can be drawn again.
        target_grace_ms = self.group.grace_ms
        _stop_if(self._partial.contradiction(until_ms, stopping, grace_ms, target_grace_ms))

    def _grow(self) -> None:
        """Pass the new events to the judgement, each exported once. Some earlier actions are
        exported again because the export needs them; their own facts are ignored."""
        new = self._session.events[self._exported :]
        self._exported = len(self._session.events)
        self._partial.grow(export([*self._needed, *new], self.script.settings))
        actions = (event for event in new if isinstance(event, events.ActionApplied))
        self._needed += (action for action in actions if action.do in _NEEDED_ACTIONS)
