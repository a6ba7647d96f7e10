"""The progress bar of `isr compare`: how many plays are over, and how far a live one has come."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PLAIN_EVERY_S = 10.0


class PlaysBar:
    """On standard error; where that is no terminal a line now and then."""

    def __init__(self, plays: int, names: tuple[str, ...], *, shown: bool) -> None:
        self._plays, self._names, self._shown = plays, names, shown
        self._done, self._at = 0, ""
        self._told_s = time.monotonic()
        console = Console(file=sys.stderr, highlight=False)
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("plays"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[at]}"),
            console=console,
            transient=True,
            disable=not (shown and console.is_terminal),
        )
        self._task = self._bar.add_task("", total=plays, at="")

    def __enter__(self) -> PlaysBar:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def play_goes_on(self, side: int, now_us: int) -> None:
        self._at = f"{self._names[side]} at {now_us / 1e6:.1f} s"
        self._tell()

    def play_is_over(self) -> None:
        self._done, self._at = self._done + 1, ""
        self._tell()

    def _tell(self) -> None:
        self._bar.update(self._task, completed=self._done, at=self._at)
        now_s = time.monotonic()
        if self._bar.disable and self._shown and now_s - self._told_s > PLAIN_EVERY_S:
            self._told_s = now_s
            where = f", {self._at}" if self._at else ""
            print(f"{self._done} of {self._plays} plays{where}", file=sys.stderr, flush=True)
