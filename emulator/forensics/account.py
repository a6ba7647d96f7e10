"""Interprets one broker's logs, line by line.

Owns the registry of sentences (a logger, a pattern, and their meaning), the state between lines,
and the counts of lines that were not understood. The sentences themselves are functions in
`state_change`, `server_log` and `controller_log`.
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
    """A known kind of line; `meaning` None: it has nothing needed."""

    pattern: re.Pattern[str]
    meaning: Meaning | None


_SENTENCES: dict[str, list[Sentence]] = {}
"""By logger; a sentence applies to lines of this logger and of those below it."""
_LEFT_OUT: set[str] = set()


def sentence(logger: str, pattern: str) -> Callable[[Meaning], Meaning]:
    """Register the meaning of lines of this logger (or one below it)."""

    def register(meaning: Meaning) -> Meaning:
        _SENTENCES.setdefault(logger, []).append(Sentence(re.compile(pattern), meaning))
        return meaning

    return register


def known(logger: str, *patterns: str) -> None:
    """Register lines that are understood but have nothing needed."""
    sentences = (Sentence(re.compile(pattern), None) for pattern in patterns)
    _SENTENCES.setdefault(logger, []).extend(sentences)


def left_out(*loggers: str) -> None:
    """Register loggers whose other lines are not needed; they are counted by logger."""
    _LEFT_OUT.update(loggers)


@cache
def _sentences_of(logger: str) -> tuple[Sentence, ...]:
    """The sentences of a logger and of those above it."""
    parts = logger.split(".")
    above = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return tuple(one for name in above for one in _SENTENCES.get(name, ()))


class Known(msgspec.Struct):
    """The state of a partition according to the lines so far: that of the last LeaderAndIsr, and
    the change that the broker attempts."""

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
    """One broker's logs while they are read, and the result: events without numbers, and moments
    that are causes and effects."""

    def __init__(self, broker: int, causes: Causes) -> None:
        self.broker, self.causes = broker, causes
        self.clock = f"broker-{broker}"
        self.events: list[AnyEvent] = []
        self.places: list[tuple[int, int]] = []
        """For each event, the number of the file and the row of its line."""
        self.not_understood: Counter[str] = Counter()
        self.other_loggers: Counter[str] = Counter()
        self.understood = 0
        self.levels: set[tuple[str, str]] = set()
        """The (logger, level) pairs that occurred."""
        self.partitions: dict[TopicPartition, Known] = {}
        self.controller_epoch = -1
        self.version = ""
        self.latest_start: int | None = None
        """The place of the last BrokerStarting in `events`."""
        self.metadata: _Metadata | None = None
        self.registered = False
        self.creating_ms = 0
        self.place = (0, 0)
        self.at_ms = 0
        """The time of the current line, by the broker's own clock."""

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
        """Add an event of this broker, at the time of the current line unless `at_ms` is set."""
        t = (self.at_ms if at_ms is None else at_ms) * 1000
        self.places.append(self.place)
        self.events.append(kind(seq=0, t=t, broker=self.broker, thread="", cause=-1, **values))

    def of(self, partition: TopicPartition) -> Known:
        return self.partitions.setdefault(partition, Known())

    # -- UpdateMetadata: one line per entry, one event per request ------------------------------

    def cached(self, request: tuple[int, int, int], state: PartitionState) -> None:
        """The broker cached an entry of the request (controller, its epoch, correlation id)."""
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
    """A line with its numbers masked, so that similar lines count together."""
    return _NUMBERS.sub("N", text.splitlines()[0])[:160]
