"""The policy of a guided search: which seeds to try next for one group, and which broker or earlier
group to blame.

A *candidate* is the choices of one group of segments. Now and then all seeds are drawn again.
Otherwise the best candidate so far is kept, and only the streams of one party are redrawn, mostly a
part of them: the broker whose partition disagrees, sometimes the action's target, or any. That way
a race that was won once is not lost again while the next one is tried. A candidate's effect may
show only groups later: the best candidate is the one after which the run came furthest, and a group
without progress sends the search back to an earlier one. This module plays nothing; it knows a
contradiction only by its score, its description and its party.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from emulator.kernel.rng import Choice, Stream

Candidate: TypeAlias = Mapping[Choice, int]
Score: TypeAlias = tuple[int, int]
"""How far a run came: the group that it did not get through, and how much was right by then."""

PATIENCE = 40
"""So many draws of one group that lead no further, then an earlier one is blamed."""
HASTE = 6
"""After so many already, where all of them go wrong in one way; after three times as many, where
most do, or the group went better after other groups before."""
REDRAW_ONE_IN = 4
NOWHERE: Score = (-1, 0)


class GroupHistory:
    """What was tried in one group, and what to try next."""

    def __init__(
        self,
        segments: range,
        fixed: Candidate,
        saved: Candidate | None,
        record: Score,
        suspects: Sequence[str] = (),
        patience: int = PATIENCE,
    ) -> None:
        """`fixed` holds in every candidate. After other groups than now, `saved` was the best
        candidate, and `record` is how far it came. `suspects`: the targets of the group's actions.
        """
        self._segments, self._fixed, self._saved = segments, fixed, saved
        self._record, self._suspects, self._patience = record, suspects, patience
        self.draws = 0
        self._failures = 0
        """Draws since one led further than all before, that one included."""
        self.best: Candidate | None = None
        self.best_score = NOWHERE
        self._party = ""
        self._streams: list[Choice] = []
        """Those that the best candidate's run drew from."""
        self._wrong: Counter[Hashable] = Counter()

    @property
    def is_exhausted(self) -> bool:
        if not self._segments[0]:
            return False  # There is nothing before the boot.
        if len(self._wrong) == 1 and self._failures >= HASTE:
            return True
        hopeless = self.best_score < self._record or self._fails_alike
        return self._failures >= (min(3 * HASTE, self._patience) if hopeless else self._patience)

    @property
    def _fails_alike(self) -> bool:
        """Mostly: whatever the group decides itself, something before it decided this."""
        return bool(self._wrong) and max(self._wrong.values()) * 5 >= self.draws * 4

    def next_candidate(self, stream: Stream) -> Candidate:
        self.draws += 1
        if self.draws == 1 and self._saved is not None:
            return {**self._saved, **self._fixed}
        if self.best is None or stream.below(REDRAW_ONE_IN) == 0:
            return {**self._draw_all(stream), **self._fixed}
        parties = sorted({party_of(actor) for _, actor, _ in self._streams})
        if not parties:
            return {**self.best, **self._draw_all(stream), **self._fixed}
        party = self._blamed(parties, stream)
        keys = [key for key in self._streams if party_of(key[1]) == party]
        redrawn = {key: stream.bits() for key in _some(keys, stream)}
        return {**self.best, **redrawn, **self._fixed}

    def _draw_all(self, stream: Stream) -> Candidate:
        return {(segment, "", ""): stream.bits() for segment in self._segments}

    def _blamed(self, parties: list[str], stream: Stream) -> str:
        """As often the party that disagrees as one that the actions are about, else any: what a
        resumed broker does first decides what others write."""
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
    ) -> None:
        """How far the run came after this candidate, what was wrong there, and whose it was."""
        self._wrong[wrong] += 1
        self._failures = 1 if score > self.best_score else self._failures + 1
        if score >= self.best_score:
            self.best, self.best_score, self._party = dict(candidate), score, party
            self._streams = list(streams)


def _some(streams: Sequence[Choice], stream: Stream) -> Sequence[Choice]:
    """All of them; those of one actor; those of one purpose; or about a quarter."""
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
    """The broker or client that a stream belongs to, whichever of its threads or connections."""
    kind, _, suffix = actor.partition("-")
    number = suffix.partition("/")[0].partition("-")[0]
    return f"{'broker' if kind == 'controller' else kind}-{number}"


def back_from(group: int, stream: Stream, failures: int) -> int:
    """Which earlier group to blame: the last one first; the more often this one failed, the further
    back the cause may lie (a broker's speed and the phases of its tasks are drawn at its boot).
    """
    reach = min(group, 1 << min(failures // 2, 16))
    return group - 1 - stream.below(reach) if group else 0
