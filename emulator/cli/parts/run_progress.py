"""The progress line of a run: redrawn in place on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from emulator.runs.summary import Progress

PLAIN_EVERY_S = 5.0
BAR = 24


class ProgressLine:
    """A listener for `perform`; always on standard error."""

    def __init__(self, duration_us: int, *, shown: bool) -> None:
        self.duration_us, self.shown = duration_us, shown
        console = Console(file=sys.stderr, highlight=False)
        self._live: Live | None = None
        if shown and console.is_terminal:
            self._live = Live(console=console, auto_refresh=False, transient=True)
        self._told_s = time.monotonic()

    def __enter__(self) -> ProgressLine:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        if self._live is not None:
            self._live.update(Text(f"{self._bar(progress)} {describe(progress)}"), refresh=True)
        elif self.shown and time.monotonic() - self._told_s > PLAIN_EVERY_S:
            self._told_s = time.monotonic()
            print(describe(progress), file=sys.stderr, flush=True)

    def _bar(self, progress: Progress) -> str:
        done = BAR * min(max(progress.at_us, 0), self.duration_us) // self.duration_us
        return "━" * done + "╌" * (BAR - done)


def describe(progress: Progress) -> str:
    """`12.3 s  1 under-replicated  4 ISR changes  1 notification  0 conflicts`."""
    time_s = f"{progress.at_us / 1e6:7.1f} s"
    if not progress.is_told:
        return time_s
    return "  ".join(
        (
            time_s,
            f"{progress.under_replicated} under-replicated",
            counted(progress.isr_changes, "ISR change"),
            counted(progress.notifications, "notification"),
            counted(progress.conflicts, "conflict"),
        )
    )


def counted(count: int, noun: str) -> str:
    """`1 conflict`, `2 conflicts`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
