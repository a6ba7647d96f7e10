"""Moments that are causes and effects of each other, by the clocks that saw them.

A message leaves one clock and arrives at another; a state is written once and then seen by many.
Owns how the two are paired; what is concluded of clocks is in `clocks`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import msgspec


class Pair(msgspec.Struct, frozen=True):
    """At `sent_ms` of one clock it was sent, at `seen_ms` of another it was there."""

    cause: str
    sent_ms: int
    effect: str
    seen_ms: int


@dataclass
class Causes:
    """Moments as they are read. `sent` and `arrived` are paired one to one, in order, where both
    are there equally often; of what was `written` once, each clock's first sight counts."""

    _sent: dict[Hashable, list[tuple[str, int]]] = field(default_factory=dict)
    _arrived: dict[Hashable, list[tuple[str, int]]] = field(default_factory=dict)
    _written: dict[Hashable, list[tuple[str, int]]] = field(default_factory=dict)
    _seen: dict[Hashable, dict[str, int]] = field(default_factory=dict)
    _last: dict[str, Hashable] = field(default_factory=dict)

    def sent(self, key: Hashable, clock: str, at_ms: int) -> None:
        self._sent.setdefault(key, []).append((clock, at_ms))

    def answered(self, key: Hashable, clock: str, at_ms: int) -> None:
        """As `sent`; several moments in a row are of one message, and the first counts."""
        if self._last.get(clock) != key:
            self._last[clock] = key
            self.sent(key, clock, at_ms)

    def arrived(self, key: Hashable, clock: str, at_ms: int) -> None:
        self._arrived.setdefault(key, []).append((clock, at_ms))

    def written(self, key: Hashable, clock: str, at_ms: int) -> None:
        self._written.setdefault(key, []).append((clock, at_ms))

    def seen(self, key: Hashable, clock: str, at_ms: int) -> None:
        """Not before it was written."""
        first = self._seen.setdefault(key, {})
        first[clock] = min(at_ms, first.get(clock, at_ms))

    def pairs(self) -> Iterator[Pair]:
        for key, sent in self._sent.items():
            arrived = self._arrived.get(key, [])
            if len(sent) == len(arrived):
                for (cause, at_ms), (effect, seen_ms) in zip(sent, arrived, strict=True):
                    yield Pair(cause, at_ms, effect, seen_ms)
        for key, written in self._written.items():
            if len({clock for clock, _ in written}) == 1 == len(written):
                (cause, at_ms) = written[0]
                for effect, seen_ms in self._seen.get(key, {}).items():
                    yield Pair(cause, at_ms, effect, seen_ms)
