"""Randomness: named streams of draws, with one seed for each segment between two actions.

A draw depends on the segment, the actor, the purpose, and the number of earlier draws from the same
stream. It never depends on other streams, so a search can keep some segments, actors or purposes
and redraw the rest. Nothing here depends on what is drawn. The generator is SplitMix64 (Steele,
Lea, Flood 2014): a stream is one integer, and the draws are the same on every platform and Python
version.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
# SplitMix64's step, 2^64 divided by the golden ratio. It is odd, so the state visits every value.
_GOLDEN = 0x9E3779B97F4A7C15

Choice = tuple[int, str, str]
"""(segment, actor, purpose); an empty actor or purpose means all of them. Without an actor the
purpose may be a moment, in microseconds since the cluster was up: from then on all streams of the
segment start again. Their actors have the moment after an @."""


def mix(z: int) -> int:
    """SplitMix64's finalizer: 64 bits in, 64 well-mixed bits out."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


@lru_cache(maxsize=4096)
def _name_hash(name: str) -> int:
    # FNV-1a, because Python's own string hash differs between processes.
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & _MASK
    return h


class Stream:
    """A sequence of draws with one integer of state."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """64 random bits (`mix` written inline, because every message draws)."""
        self._state = z = (self._state + _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        # Lemire's multiplication instead of a remainder: always one draw, and no visible bias while
        # n is far below 2^64.
        return (self.bits() * n) >> 64

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + self.below(high - low + 1)

    def shuffled(self, items: list[T]) -> list[T]:
        """A new list in random order (Fisher-Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out


class Chance:
    """All streams of one run. `choices` overrides the seeds of a segment, of an actor in it, or of
    one stream."""

    def __init__(self, seed: int, choices: Mapping[Choice, int] | None = None) -> None:
        self.seed = seed & _MASK
        self.choices = dict(choices or {})
        self.segment = 0
        self.restarts = 0
        """Counts how often all streams started again: with each segment, and at chosen moments."""
        self._since = ""
        """The moment since which the current streams are drawn; empty: the segment's start."""
        self.draws = 0
        self._streams: dict[tuple[str, str], Stream] = {}

    def next_segment(self) -> None:
        """Start the next segment, at an action: every stream starts again with the new segment's
        seed."""
        self.segment += 1
        self._start_again("")

    def moments_us(self) -> list[int]:
        """The chosen moments of the current segment, in microseconds since the cluster was up."""
        return sorted(
            int(purpose)
            for segment, actor, purpose in self.choices
            if segment == self.segment and not actor and purpose
        )

    def start_again_at(self, moment_us: int) -> None:
        """One of the chosen moments has come."""
        self._start_again(str(moment_us))

    def _start_again(self, since: str) -> None:
        self.draws += len(self._streams)
        self.restarts += 1
        self._since = since
        self._streams.clear()

    def stream(self, purpose: str, actor: str) -> Stream:
        """The stream of the current segment for one purpose of one actor."""
        key = (purpose, actor)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = Stream(self.seed_of(self.segment, actor, purpose))
        return stream

    def seed_of(self, segment: int, actor: str, purpose: str) -> int:
        """The most specific seed that was chosen for this stream; otherwise a seed derived from the
        run's."""
        choices = self.choices
        if self._since:
            base, place = choices[segment, "", self._since], f"{actor}@{self._since}"
        else:
            base, place = (
                choices.get((segment, "", ""), mix(self.seed ^ mix(segment + _GOLDEN))),
                actor,
            )
        # From general to specific: the segment, then the actor, then this stream.
        if choices:
            base = choices.get((segment, place, ""), base)
            exact = choices.get((segment, place, purpose))
            if exact is not None:
                return exact
        return mix(base ^ _name_hash(actor)) ^ _name_hash(purpose)


def definition_shuffles(seed: int) -> random.Random:
    """Python's own generator, for an external definition that requires it (the two-sample test of
    `distance-of-recordings`). A run never draws from it."""
    return random.Random(seed)
