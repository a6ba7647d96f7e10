"""The base class of diagnoses, and their registry.

A diagnosis is one file in this package, named like the hazard in the catalogue, with one subclass
of `Diagnosis`: the pattern of the hazard in a trace, from its beginning to its end. It receives
events through `on_...` methods after the state, and uses only facts that real clusters log. Only
its own file knows its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import ClassVar, Protocol

import msgspec

from emulator.registry import classes_of
from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.state import TraceState
from emulator.trace.state.partitions import State
from emulator.trace.state.spans import Interval
from emulator.trace.values import TopicPartition

NOT_ENDED = "it had not ended when the trace ends"


class Diagnosed(msgspec.Struct, frozen=True):
    """One case of a hazard: seen from `from_us` to `to_us` (None: until the trace ends), at
    `broker`; how it ended, and the events that show it."""

    name: str
    broker: int
    partitions: tuple[TopicPartition, ...]
    from_us: int
    to_us: int | None
    seen: str
    ended: str
    cure: str
    facts: tuple[int, ...]


class Coverage(msgspec.Struct, frozen=True):
    """The time covered by the logs: their end, and their gaps (microseconds of the trace)."""

    until_us: int = 0
    silences: tuple[Interval, ...] = ()


class Fact(Protocol):
    """The beginning or end of a case: an event, or a state with its writer's event."""

    @property
    def seq(self) -> int: ...
    @property
    def t(self) -> int: ...
    @property
    def broker(self) -> int: ...


class Written(msgspec.Struct, frozen=True):
    """A state of a partition, as the fact that it was written."""

    seq: int
    t: int
    broker: int


def written(state: State) -> Written:
    return Written(state.seq, state.from_us, state.by)


class Case(msgspec.Struct):
    """A case that has not ended yet. It counts after it has lasted for `patience_us`."""

    broker: int
    partitions: tuple[TopicPartition, ...]
    from_us: int
    facts: list[int]
    seen: str
    patience_us: int = 0


class Diagnosis:
    """The pattern of one hazard."""

    cure: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    """The logs that it needs (`state-change`, `controller`, `server`, `zookeeper`)."""

    def __init__(self, state: TraceState) -> None:
        self.state = state
        self.cases: list[Diagnosed] = []
        self.open_cases: dict[Hashable, Case] = {}
        self.prepare()

    def prepare(self) -> None:
        """Initialise its state."""

    @property
    def name(self) -> str:
        """The hazard's name in the catalogue, from the file's name."""
        return name_of(type(self))

    def begin(
        self,
        key: Hashable,
        event: Fact,
        seen: str,
        *partitions: TopicPartition,
        broker: int | None = None,
        patience_us: int = 0,
    ) -> Case:
        """Begin a case with this event, unless one with this key is open."""
        case = self.open_cases.get(key)
        if case is None:
            of = event.broker if broker is None else broker
            case = Case(of, partitions, event.t, [event.seq], seen, patience_us)
            self.open_cases[key] = case
        return case

    def end(self, key: Hashable, event: Fact, how: str) -> None:
        """End the open case with this key, if there is one."""
        case = self.open_cases.pop(key, None)
        if case is not None and event.t - case.from_us >= case.patience_us:
            case.facts.append(event.seq)
            self._add(case, event.t, how)

    def forget(self, key: Hashable) -> None:
        """Discard the open case with this key."""
        self.open_cases.pop(key, None)

    def keys(self, is_meant: Callable[[Case], bool]) -> list[Hashable]:
        """The keys of the open cases that match."""
        return [key for key, case in self.open_cases.items() if is_meant(case)]

    def pass_silence(self, from_us: int) -> None:
        """Nothing is known from this moment until the logs continue, so that waiting times are
        unreliable."""
        for key in self.keys(lambda case: from_us - case.from_us < case.patience_us):
            self.forget(key)

    def finish(self, now_us: int) -> None:
        """The trace has ended; open cases have no end."""
        for case in self.open_cases.values():
            if now_us - case.from_us >= case.patience_us:
                self._add(case, None, NOT_ENDED)
        self.open_cases.clear()

    def _add(self, case: Case, to_us: int | None, how: str) -> None:
        facts = tuple(sorted(set(case.facts)))
        self.cases.append(
            Diagnosed(
                self.name, case.broker, case.partitions, case.from_us, to_us, case.seen, how,
                self.cure, facts,
            )
        )  # fmt: skip


def name_of(kind: type[Diagnosis]) -> str:
    """The hazard's name in the catalogue, or, without a ticket, its recogniser's name."""
    name = kind.__module__.rpartition(".")[2]
    if name.startswith(("kafka_", "kip_")):
        return re.sub(r"^[a-z]+", lambda ticket: ticket[0].upper(), name.replace("_", "-"))
    return name.replace("_", " ")


@cache
def diagnoses() -> tuple[type[Diagnosis], ...]:
    """All diagnoses, found by a scan of this package."""
    return tuple(sorted(classes_of("emulator.forensics.diagnoses", Diagnosis), key=name_of))


class Diagnoses:
    """All diagnoses of one trace. Must receive each event after `state`."""

    def __init__(self, state: TraceState, coverage: Coverage | None = None) -> None:
        self.state, self._coverage = state, coverage or Coverage()
        self._silences = sorted(self._coverage.silences, reverse=True)
        self.all = [kind(state) for kind in diagnoses()]
        self._dispatch = Dispatch(self.all)

    def __call__(self, event: AnyEvent) -> None:
        while self._silences and event.t >= self._silences[-1][1]:
            from_us, _ = self._silences.pop()
            for one in self.all:
                one.pass_silence(from_us)
        self._dispatch(event)

    def finish(self) -> list[Diagnosed]:
        """All cases in order of time, at the end of the trace."""
        for one in self.all:
            one.finish(max(self.state.clock.now_us, self._coverage.until_us))
        cases = [case for one in self.all for case in one.cases]
        return sorted(cases, key=lambda case: (case.from_us, case.name, case.broker))


def diagnose(events: Iterable[AnyEvent], coverage: Coverage | None = None) -> list[Diagnosed]:
    """All cases in a trace, in order of time."""
    state = TraceState(level_histories=False)
    every = Diagnoses(state, coverage)
    for event in events:
        state(event)
        every(event)
    return every.finish()
