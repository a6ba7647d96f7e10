"""What one broker's logs say, line by line: the state in which they are read.

Owns the registry of sentences (each names a logger, a pattern, and what it means), what is
remembered from one line to the next, and the count of what was not understood. A sentence is a
function in `state_change`, `server_log` or `controller_log`; nothing here knows one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import msgspec

from emulator.forensics.causes import Causes
from emulator.forensics.layouts import Line
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import PartitionState, TopicPartition

Meaning = Callable[["Account", "re.Match[str]"], object]
_NUMBERS = re.compile(r"\d+")


class Sentence(msgspec.Struct, frozen=True):
    """A line that is understood; `meaning` None: it is known but carries nothing needed."""

    pattern: re.Pattern[str]
    meaning: Meaning | None


_SENTENCES: dict[str, list[Sentence]] = {}
"""By logger: lines of this one, or one below it."""
_LEFT_OUT: set[str] = set()


def sentence(logger: str, pattern: str) -> Callable[[Meaning], Meaning]:
    """Register what a line of this logger (or one below it) means."""

    def register(meaning: Meaning) -> Meaning:
        _SENTENCES.setdefault(logger, []).append(Sentence(re.compile(pattern), meaning))
        return meaning

    return register


def known(logger: str, *patterns: str) -> None:
    """Lines that are understood but carry nothing needed here."""
    sentences = (Sentence(re.compile(pattern), None) for pattern in patterns)
    _SENTENCES.setdefault(logger, []).extend(sentences)


def left_out(*loggers: str) -> None:
    """Loggers whose other lines are not needed: they are counted, by logger."""
    _LEFT_OUT.update(loggers)


@cache
def _sentences_of(logger: str) -> tuple[Sentence, ...]:
    """The sentences of a logger and of those above it."""
    parts = logger.split(".")
    above = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return tuple(one for name in above for one in _SENTENCES.get(name, ()))


class Known(msgspec.Struct):
    """What the broker's lines said of a partition so far: the state of the last LeaderAndIsr, and
    what it wants to change."""

    requested: PartitionState | None = None
    leader_epoch: int = -1
    zk_version: int = -1
    isr: tuple[int, ...] = ()
    change: str = ""
    decided_ms: int = 0
    leo: int = -1
    leads: bool = False
    hw_rose_from: int = -1


class Account:
    """One broker's logs while they are read, and what came of them: events without numbers, and
    moments that are causes and effects."""

    def __init__(self, broker: int, causes: Causes) -> None:
        self.broker, self.causes = broker, causes
        self.clock = f"broker-{broker}"
        self.events: list[AnyEvent] = []
        self.places: list[tuple[int, int]] = []
        """Of each event: the file (its number) and the row of its line."""
        self.not_understood: Counter[str] = Counter()
        self.other_loggers: Counter[str] = Counter()
        self.understood = 0
        self.levels: set[tuple[str, str]] = set()
        """Which loggers wrote, and at which levels."""
        self.partitions: dict[TopicPartition, Known] = {}
        self.controller_epoch = -1
        self.version = ""
        self.metadata: _Metadata | None = None
        self.registered = False
        self.creating_ms = 0
        self.place = (0, 0)
        self.at_ms = 0
        """When the line that is read was written, by the broker's own clock."""

    def read(self, line: Line, file: int = 0) -> None:
        self.at_ms, self.place = line.at_ms, (file, line.row)
        self.levels.add((line.logger, line.level))
        sentences = _sentences_of(line.logger)
        for one in sentences:
            match = one.pattern.search(line.text)
            if match is None:
                continue
            try:
                if one.meaning is not None:
                    one.meaning(self, match)
                self.understood += 1
            except (ValueError, KeyError) as why:
                masked = _mask_numbers(line.text)
                self.not_understood[f"{line.logger}: {masked} ({type(why).__name__})"] += 1
            return
        if not sentences or any(line.logger.startswith(name) for name in _LEFT_OUT):
            self.other_loggers[line.logger] += 1
        else:
            self.not_understood[f"{line.logger}: {_mask_numbers(line.text)}"] += 1

    def emit(
        self, kind: Callable[..., AnyEvent], at_ms: int | None = None, **values: object
    ) -> None:
        """Note an event of this broker, at this moment where `at_ms` names no other."""
        t = (self.at_ms if at_ms is None else at_ms) * 1000
        self.places.append(self.place)
        self.events.append(kind(seq=0, t=t, broker=self.broker, thread="", cause=-1, **values))

    def of(self, partition: TopicPartition) -> Known:
        return self.partitions.setdefault(partition, Known())

    # -- UpdateMetadata: one line per entry, one event per request ------------------------------

    def cached(self, request: tuple[int, int, int], state: PartitionState) -> None:
        """An entry of the request (controller, its epoch, correlation id) was taken over."""
        self._metadata_of(request).states.append(state)

    def removed(self, request: tuple[int, int, int], partition: TopicPartition) -> None:
        self._metadata_of(request).removed.append(partition)

    def _metadata_of(self, request: tuple[int, int, int]) -> _Metadata:
        if self.metadata is not None and self.metadata.request != request:
            self.end_of_metadata()
        if self.metadata is None:
            self.metadata = _Metadata(request)
        self.metadata.at_ms, self.metadata.place = self.at_ms, self.place
        return self.metadata

    def end_of_metadata(self) -> None:
        """All lines of the request were read."""
        metadata, self.metadata = self.metadata, None
        if metadata is None:
            return
        sender, epoch, _ = metadata.request
        here, self.place = self.place, metadata.place
        self.emit(
            e.MetadataCacheUpdated,
            metadata.at_ms,
            sender=sender,
            sender_epoch=epoch,
            live_brokers=(),
            states=tuple(metadata.states),
            removed=tuple(metadata.removed),
        )
        self.place = here


class _Metadata(msgspec.Struct):
    """An UpdateMetadata request whose lines are being read."""

    request: tuple[int, int, int]
    at_ms: int = 0
    place: tuple[int, int] = (0, 0)
    states: list[PartitionState] = []
    removed: list[TopicPartition] = []


def _mask_numbers(text: str) -> str:
    """A line with its numbers masked: lines that say the same count together."""
    return _NUMBERS.sub("N", text.splitlines()[0])[:160]
