"""Progress lines of `isr conform`: redrawn on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

from emulator.search.guided.restarts import Progress

_PLAIN_EVERY_S = 10.0


class _Line:
    def __init__(self, name: str) -> None:
        self.name = name
        self._in_place = sys.stderr.isatty()
        self._told_s = time.monotonic()

    def show(self, text: str) -> None:
        if self._in_place:
            print(f"\r{self.name}: {text}\x1b[K", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._told_s > _PLAIN_EVERY_S:
            self._told_s = time.monotonic()
            print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._in_place:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class BlindLine(_Line):
    """How many plays are over."""

    def __init__(self, name: str, plays: int) -> None:
        super().__init__(name)
        self.plays = plays

    def __enter__(self) -> BlindLine:
        return self

    def __call__(self, played: int, agreeing: int | None = None) -> None:
        agree = "" if agreeing is None else f", {agreeing} agree"
        self.show(f"{played} of {self.plays} played{agree}")


class GuidedLine(_Line):
    """How far the searches came."""

    def __enter__(self) -> GuidedLine:
        return self

    def __call__(self, progress: Progress) -> None:
        agree = f", {progress.agreeing} agree, {progress.missing} parts missing"
        self.show(
            f"{progress.seconds:.0f} s, search {progress.searches}, stretch reached"
            f" {progress.stretch} of {progress.stretches}, {progress.total} draws,"
            f" {progress.draws_per_second:.0f} per second{agree if progress.agreeing else ''}"
        )
