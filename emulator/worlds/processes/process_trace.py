"""The trace of one process: events as they happen, continued after a restart.

A restarted broker appends to its trace: events keep unique numbers. Nothing is kept in memory,
because a broker may run for weeks. Owns the file; `cause_links` connects it to other traces.
"""

from __future__ import annotations

from pathlib import Path

from emulator.trace.events import AnyEvent
from emulator.trace.reader import Header, TraceWriter, read_events
from emulator.trace.sink import Sink
from emulator.worlds.network.cause_links import SUFFIX, cut_to_whole_lines


class PassingSink(Sink):
    """Passes each event to listeners and to the file, and keeps none."""

    __slots__ = ()

    def append(self, event: AnyEvent) -> None:
        super().append(event)
        self.events.clear()


class ProcessTrace:
    """A sink, and its file if it has one."""

    def __init__(self, path: Path | None, header: Header) -> None:
        self.sink = PassingSink()
        self.links_path: Path | None = None
        self._writer: TraceWriter | None = None
        if path is not None:
            self.links_path = path.with_name(path.name + SUFFIX)
            cut_to_whole_lines(path)
            if path.exists() and path.stat().st_size:
                self.sink.next_seq = sum(1 for _ in read_events(path))
            self._writer = TraceWriter(path, header, append=self.sink.next_seq > 0)
            self.sink.listen(self._writer)

    def flush(self) -> None:
        """Flush to the operating system, so that a kill cannot lose events."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        self.sink.close()
        if self._writer is not None:
            self._writer.close()
