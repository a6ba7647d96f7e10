"""The events of a trace file as a sequence that reads them on access and keeps none in memory.

Indexes the file offset of every `STRIDE`-th event. A slice is another view of the same file. Only
for traces in the current format, whose events are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

from emulator.trace.events import AnyEvent
from emulator.trace.reader import decode_event

STRIDE = 1024


class _Offsets:
    """The file offset of every `STRIDE`-th event, indexed as far as it was needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            file.readline()
            self._starts = [file.tell()]

    def before(self, place: int) -> int:
        """The file offset of the last indexed event at or before `place`."""
        block = place // STRIDE
        with self.path.open("rb") as file:
            file.seek(self._starts[-1])
            while len(self._starts) <= block:
                for _ in range(STRIDE):
                    file.readline()
                self._starts.append(file.tell())
        return self._starts[block]


class EventsOnDisk(Sequence[AnyEvent]):
    """A view of the events from `start` up to (not including) `stop`. Their lines must already be
    written."""

    def __init__(self, path: Path, stop: int) -> None:
        self._offsets, self._start, self._stop = _Offsets(path), 0, stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, place: int) -> AnyEvent: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[AnyEvent]: ...
    def __getitem__(self, place: int | slice) -> AnyEvent | Sequence[AnyEvent]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1:
                return [self[n] for n in range(start, stop, step)]
            return self._view(self._start + start, self._start + max(start, stop))
        at = range(self._start, self._stop)[place]
        return next(iter(self._view(at, at + 1)))

    def _view(self, start: int, stop: int) -> EventsOnDisk:
        view = EventsOnDisk.__new__(EventsOnDisk)
        view._offsets, view._start, view._stop = self._offsets, start, stop
        return view

    def __iter__(self) -> Iterator[AnyEvent]:
        if self._start >= self._stop:
            return
        with self._offsets.path.open("rb") as file:
            file.seek(self._offsets.before(self._start))
            for _ in range(self._start % STRIDE):
                file.readline()
            for _ in range(len(self)):
                yield decode_event(file.readline())

    def __reversed__(self) -> Iterator[AnyEvent]:
        stop = self._stop
        while stop > self._start:
            start = max(self._start, (stop - 1) // STRIDE * STRIDE)
            yield from reversed(list(self._view(start, stop)))
            stop = start

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]
