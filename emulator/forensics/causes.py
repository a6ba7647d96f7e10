"""Causes and effects with their times on different clocks.

A message is sent on one clock and arrives on another; a state is written once and then seen by many
brokers. Owns how these moments are paired; `clocks` estimates the offsets from the pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import msgspec


class Pair(msgspec.Struct, frozen=True):
    """Sent at `sent_ms` of one clock, seen at `seen_ms` of another."""

    cause: str
    sent_ms: int
    effect: str
    seen_ms: int


@dataclass
class Causes:
    """Collects moments. `sent` and `arrived` are paired one to one, in order, if both occur equally
    often. For a state, which is `written` once, the first sight on each clock counts."""

    _sent: dict[Hashable, list[tuple[str, int]]] = field(default_factory=dict)
    _arrived: dict[Hashable, list[tuple[str, int]]] = field(default_factory=dict)
    _written: dict[Hashable, list[tuple[str, int]]] = field(default_factory=dict)
    _seen: dict[Hashable, dict[str, int]] = field(default_factory=dict)
    _last: dict[str, Hashable] = field(default_factory=dict)

    def sent(self, key: Hashable, clock: str, at_ms: int) -> None:
        self._sent.setdefault(key, []).append((clock, at_ms))

    def answered(self, key: Hashable, clock: str, at_ms: int) -> None:
        """Like `sent`; of several consecutive moments of one message the first counts."""
        if self._last.get(clock) != key:
            self._last[clock] = key
            self.sent(key, clock, at_ms)

    def arrived(self, key: Hashable, clock: str, at_ms: int) -> None:
        self._arrived.setdefault(key, []).append((clock, at_ms))

    def written(self, key: Hashable, clock: str, at_ms: int) -> None:
        self._written.setdefault(key, []).append((clock, at_ms))

    def seen(self, key: Hashable, clock: str, at_ms: int) -> None:
        """An observation, which cannot precede the write."""
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
