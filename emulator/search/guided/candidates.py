"""The policy of a guided search: which seeds to try next for one group, and when to return to an
earlier group.

A *candidate* is a set of choices for one group of segments. Occasionally all seeds are redrawn.
Otherwise the best candidate so far is the base. Either only streams of one party are redrawn,
usually some of them. The party is the broker whose partition disagrees, the action's target, or
any. So races that already match stay matched while others are tried. Or all streams start again at
a moment shortly before the contradiction: what happened until then stays exactly as it was.

A candidate's effect may show only groups later: the best candidate is the one with which the run
came furthest, and a group without progress sends the search back to an earlier one. This module
plays nothing; it knows a contradiction only by its score, its description, its party and its time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from emulator.kernel.rng import Choice, Stream

Candidate: TypeAlias = Mapping[Choice, int]
Score: TypeAlias = tuple[int, int, int]
"""How far a run came: the group in which it failed, and how much was right by then, of states and
decisions and of the part that must match, too."""

PATIENCE = 40
"""The number of draws of one group without progress after which an earlier group is blamed."""
HASTE = 6
"""The number of draws after which that already happens if all of them fail alike; three times as
many if most do, or if the group did better after other earlier groups."""
REDRAW_ONE_IN = 4
LATE_IN = 2
"""One candidate in this many keeps the best one's course until shortly before its contradiction."""
BEFORE_US = (300, 1_000_000)
"""How long before."""
NOWHERE: Score = (-1, 0, 0)


class GroupHistory:
    """The candidates tried in one group, and the choice of the next one."""

    def __init__(
        self,
        segments: range,
        fixed: Candidate,
        saved: Candidate | None,
        record: Score,
        suspects: Sequence[str] = (),
        patience: int = PATIENCE,
        since: str = "",
    ) -> None:
        """`fixed`: choices of every candidate. `saved`: the best candidate after other earlier
        groups, and `record` how far it came. `suspects`: the targets of the group's actions.
        `since`: the moment of its segment at which the group begins.
        """
        self._since = since
        self._segments, self._fixed, self._saved = segments, fixed, saved
        self._record, self._suspects, self._patience = record, suspects, patience
        self.draws = 0
        self._failures = 0
        """Draws since the last progress, inclusive."""
        self.best: Candidate | None = None
        self.best_score = NOWHERE
        self._party = ""
        self._wrong_at: Moment | None = None
        """When the best candidate's run was first wrong."""
        self._streams: list[Choice] = []
        """The streams that the best candidate's run used."""
        self._wrong: Counter[Hashable] = Counter()

    def begin_anew(self) -> None:
        """A further part must match from now on: the best candidate is tried again, and the next
        ones are compared with how right it is then."""
        self._saved, self._record = self.best, NOWHERE
        self.best, self.best_score, self._wrong_at = None, NOWHERE, None
        self.draws = self._failures = 0
        self._wrong.clear()

    @property
    def is_exhausted(self) -> bool:
        if not self._segments[0]:
            return False  # nothing precedes the boot
        if len(self._wrong) == 1 and self._failures >= self._haste:
            return True
        hopeless = self.best_score < self._record or self._fails_alike
        return self._failures >= (min(3 * HASTE, self._patience) if hopeless else self._patience)

    @property
    def _haste(self) -> int:
        """Candidates that share the best one's course until shortly before fail alike for a while,
        until one of them does not."""
        return HASTE if self._wrong_at is None else min(3 * HASTE, self._patience)

    @property
    def _fails_alike(self) -> bool:
        """Whether most draws fail alike, so that the cause is probably in an earlier group."""
        return bool(self._wrong) and max(self._wrong.values()) * 5 >= self.draws * 4

    def next_candidate(self, stream: Stream) -> Candidate:
        self.draws += 1
        if self.draws == 1 and self._saved is not None:
            return {**self._saved, **self._fixed}
        if self.best is None or stream.below(REDRAW_ONE_IN) == 0:
            return {**self._draw_all(stream), **self._fixed}
        if self._wrong_at is not None and stream.below(LATE_IN) == 0:
            late = _from_shortly_before(self._wrong_at, self.best, stream)
            if late is not None:
                return {**late, **self._fixed}
        parties = sorted({party_of(actor) for _, actor, _ in self._streams})
        if not parties:
            return {**self.best, **self._draw_all(stream), **self._fixed}
        party = self._blamed(parties, stream)
        keys = [key for key in self._streams if party_of(key[1]) == party]
        redrawn = {key: stream.bits() for key in _sample(keys, stream)}
        return {**self.best, **redrawn, **self._fixed}

    def _draw_all(self, stream: Stream) -> Candidate:
        return {(segment, "", self._since): stream.bits() for segment in self._segments}

    def _blamed(self, parties: list[str], stream: Stream) -> str:
        """Equally often the party that disagrees and a target of the actions, otherwise any: what a
        resumed broker does first influences what others write."""
        chance = stream.below(8)
        if chance < 3 and self._party in parties:
            return self._party
        about = [party for party in self._suspects if party in parties]
        if about and chance < 6:
            return about[stream.below(len(about))]
        return parties[stream.below(len(parties))]

    def learn(
        self,
        candidate: Candidate,
        score: Score,
        wrong: Hashable,
        party: str,
        streams: Iterable[Choice],
        wrong_at: Moment | None = None,
    ) -> None:
        """Record how far the run came with this candidate, what was wrong there, at which party and
        when (None: not in this group)."""
        self._wrong[wrong] += 1
        self._failures = 1 if score > self.best_score else self._failures + 1
        if score >= self.best_score:
            self.best, self.best_score, self._party = dict(candidate), score, party
            self._wrong_at = wrong_at
            self._streams = list(streams)


@dataclass(frozen=True)
class Moment:
    """A moment in microseconds since the cluster was up, its segment, and when that began."""

    segment: int
    began_us: int
    at_us: int


def _from_shortly_before(wrong_at: Moment, best: Candidate, stream: Stream) -> Candidate | None:
    """The same candidate until a moment before it was wrong, then all streams again; None: the
    segment had not begun."""
    before_us = BEFORE_US[0] << stream.below((BEFORE_US[1] // BEFORE_US[0]).bit_length())
    moment_us = wrong_at.at_us - before_us
    if moment_us <= wrong_at.began_us:
        return None
    until_then = {
        choice: seed
        for choice, seed in best.items()
        if choice[0] < wrong_at.segment
        or (choice[0] == wrong_at.segment and since_us(choice) < moment_us)
    }
    return {**until_then, (wrong_at.segment, "", str(moment_us)): stream.bits()}


def since_us(choice: Choice) -> float:
    """The moment from which a choice holds; -inf: from the start of its segment."""
    _, actor, purpose = choice
    return float((actor.partition("@")[2] if actor else purpose) or -math.inf)


def _sample(streams: Sequence[Choice], stream: Stream) -> Sequence[Choice]:
    """All of the streams, those of one actor, those of one purpose, or about a quarter."""
    kind = stream.below(4)
    if kind == 0:
        return streams
    chosen = streams[stream.below(len(streams))]
    if kind == 1:
        return [key for key in streams if key[1] == chosen[1]]
    if kind == 2:
        return [key for key in streams if key[2] == chosen[2]]
    return [chosen, *(key for key in streams if key != chosen and stream.below(4) == 0)]


def party_of(actor: str) -> str:
    """The broker or client that a stream belongs to; threads, connections and moments are
    ignored."""
    kind, _, suffix = actor.partition("@")[0].partition("-")
    number = suffix.partition("/")[0].partition("-")[0]
    return f"{'broker' if kind == 'controller' else kind}-{number}"


def back_from(group: int, stream: Stream, failures: int) -> int:
    """Which earlier group to blame. First it is the previous one; with more failures it may be an
    earlier one (a broker's speed and the phases of its tasks are drawn at its boot).
    """
    reach = min(group, 1 << min(failures // 2, 16))
    return group - 1 - stream.below(reach) if group else 0
