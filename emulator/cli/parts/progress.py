"""The one progress display of all commands: a line on standard error.

On a terminal the line is redrawn in place, with a bar if the total is known, and removed at the
end. Elsewhere a plain line is printed every few seconds. No thread refreshes it, because commands
fork while it is shown and a thread would not survive that.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from emulator.runs.summary import Progress as RunProgress
from emulator.view.event_text import counted

REDRAW_EVERY_S, PLAIN_EVERY_S = 0.2, 5.0


class ProgressLine:
    """The progress of a command. `total`: where the bar is full, in the unit of `done`; None: no
    bar."""

    def __init__(self, *, total: float | None = None, shown: bool = True) -> None:
        self._total, self._shown = total, shown
        self._next_s = 0.0
        self._live: Progress | None = None

    def __enter__(self) -> ProgressLine:
        console = Console(file=sys.stderr, highlight=False)
        if self._shown and console.is_terminal:
            text = TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            )
            columns = [BarColumn(bar_width=24), text] if self._total else [text]
            self._live = Progress(
                *columns,
                console=console,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.add_task("", total=self._total)
        else:
            self._next_s = time.monotonic() + PLAIN_EVERY_S
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the line; what is shown later is printed."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self, text: str | Callable[[], str], done: float = 0.0) -> None:
        """Show the text if the last update is old enough; a callable is called only then."""
        now_s = time.monotonic()
        if not self._shown or now_s < self._next_s:
            return
        shown = text if isinstance(text, str) else text()
        if self._live is not None:
            self._next_s = now_s + REDRAW_EVERY_S
            task = self._live.task_ids[0]
            self._live.update(task, description=shown, completed=done)
            # Started late, so that earlier output stays above the line.
            self._live.start()
            self._live.refresh()
        else:
            self._next_s = now_s + PLAIN_EVERY_S
            try:
                print(shown, file=sys.stderr, flush=True)
            except BrokenPipeError:
                # Its reader is gone (`isr cluster up 2>&1 | head`). A run goes on without one, and
                # its end must not fail of it.
                self._shown = False

    def step(self, text: str) -> None:
        """Show one of few steps at once; without a terminal each prints a line."""
        self._next_s = 0.0
        self.update(text)

    def show_run(self, progress: RunProgress) -> None:
        """Show how far a run is; `total` is its length in microseconds."""
        self.update(lambda: describe_run(progress), max(progress.at_us, 0))


def describe_run(progress: RunProgress) -> str:
    """`12.3 s  1 under-replicated  4 ISR changes  1 notification  0 conflicts`."""
    time_s = f"{progress.at_us / 1e6:7.1f} s"
    if not progress.is_known:
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
