"""A line that says how far a search is: redrawn on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

REDRAWN_EVERY_S, PLAIN_EVERY_S = 0.2, 10.0


class ProgressLine:
    """On standard error, and not more often than somebody wants to read it; `told` is asked for the
    words when it is time."""

    def __init__(self, told: Callable[[], str]) -> None:
        self._told = told
        self._in_place = sys.stderr.isatty()
        self._told_s = time.monotonic()

    def show(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s < (REDRAWN_EVERY_S if self._in_place else PLAIN_EVERY_S):
            return
        self._told_s = now_s
        start, end = ("\r", "\x1b[K") if self._in_place else ("", "\n")
        print(f"{start}{self._told()}{end}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._in_place:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
