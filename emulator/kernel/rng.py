"""Chance: named streams of draws, a seed for each segment between two actions.

A draw depends on the segment, the actor and the purpose, and on how many draws this very stream has
made before; never on what other streams did. So a search can keep the segments, actors or purposes
that it likes and redraw the rest. Nothing here knows what is drawn for. SplitMix64 (Steele, Lea,
Flood 2014): a stream costs one integer, and the same draws come out on every platform and Python.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
# 2^64 divided by the golden ratio, SplitMix64's step: odd, so that the state visits every value.
_GOLDEN = 0x9E3779B97F4A7C15

Choice = tuple[int, str, str]
"""(segment, actor, purpose); an empty actor or purpose means all of them."""


def mix(z: int) -> int:
    """SplitMix64's finaliser: 64 bits in, 64 well-mixed bits out."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


@lru_cache(maxsize=4096)
def _name_hash(name: str) -> int:
    # FNV-1a: Python's own hash of a text differs from process to process.
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
        """64 random bits (`mix`, written out: every message draws)."""
        self._state = z = (self._state + _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """A whole number in [0, n)."""
        # Lemire's multiplication instead of a remainder: one draw always, and no bias that n far
        # below 2^64 could show.
        return (self.bits() * n) >> 64

    def between(self, low: int, high: int) -> int:
        """A whole number in [low, high]."""
        return low + self.below(high - low + 1)

    def shuffled(self, items: list[T]) -> list[T]:
        """A new list in drawn order (Fisher-Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out


class Chance:
    """All streams of one run. `choices` overrides seeds: of a whole segment, of an actor in it, or
    of one stream."""

    def __init__(self, seed: int, choices: Mapping[Choice, int] | None = None) -> None:
        self.seed = seed & _MASK
        self.choices = dict(choices or {})
        self.segment = 0
        self.draws = 0
        self._streams: dict[tuple[str, str], Stream] = {}

    def next_segment(self) -> None:
        """Called at each action: every stream starts again, with this segment's seed."""
        self.draws += len(self._streams)
        self.segment += 1
        self._streams.clear()

    def stream(self, purpose: str, actor: str) -> Stream:
        """The stream of this segment for one purpose of one actor."""
        key = (purpose, actor)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = Stream(self.seed_of(self.segment, actor, purpose))
        return stream

    def seed_of(self, segment: int, actor: str, purpose: str) -> int:
        """The most particular seed that was chosen for this stream, else one derived from the
        run's."""
        choices = self.choices
        base = choices.get((segment, "", ""), mix(self.seed ^ mix(segment + _GOLDEN)))
        # From the general to the particular: segment, then actor, then this stream alone.
        if choices:
            base = choices.get((segment, actor, ""), base)
            exact = choices.get((segment, actor, purpose))
            if exact is not None:
                return exact
        return mix(base ^ _name_hash(actor)) ^ _name_hash(purpose)


def definition_shuffles(seed: int) -> random.Random:
    """Python's own generator, for a definition from outside that names it (the two-sample test of
    `distance-of-recordings`); nothing of a run is drawn from it."""
    return random.Random(seed)
