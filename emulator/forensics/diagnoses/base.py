"""What a diagnosis is, and the registry of them.

A diagnosis is one file in this package, named as the hazard is in the catalogue, with one subclass
of `Diagnosis`: the pattern that it leaves in a trace, from its beginning to its end, and its cure.
It hears events through `on_...` methods after the state has heard them, and works on facts that
real clusters log. Nothing else knows its name.
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
    """One case: what was seen from `from_us` to `to_us` (None: it had not ended when the trace
    ends), of `broker`, how it ended, and the events that show it."""

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
    """What a trace covers beyond its events: until when somebody looked, and when nobody did
    (microseconds of the trace)."""

    until_us: int = 0
    silences: tuple[Interval, ...] = ()


class Fact(Protocol):
    """What a case begins or ends with: an event, or a state as its writer's event."""

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
    """One that has begun and not ended yet. It counts when it has lasted for `patience_us`."""

    broker: int
    partitions: tuple[TopicPartition, ...]
    from_us: int
    facts: list[int]
    seen: str
    patience_us: int = 0


class Diagnosis:
    """One hazard's pattern."""

    cure: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    """The logs that it reads (`state-change`, `controller`, `server`, `zookeeper`)."""

    def __init__(self, state: TraceState) -> None:
        self.state = state
        self.cases: list[Diagnosed] = []
        self.going_on: dict[Hashable, Case] = {}
        self.prepare()

    def prepare(self) -> None:
        """Make what it keeps."""

    @property
    def name(self) -> str:
        """The hazard's name in the catalogue: its file is named so."""
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
        """A case begins with this event, unless one with this key goes on."""
        case = self.going_on.get(key)
        if case is None:
            of = event.broker if broker is None else broker
            case = Case(of, partitions, event.t, [event.seq], seen, patience_us)
            self.going_on[key] = case
        return case

    def end(self, key: Hashable, event: Fact, how: str) -> None:
        """The case with this key, if one goes on, ended with this event."""
        case = self.going_on.pop(key, None)
        if case is not None and event.t - case.from_us >= case.patience_us:
            case.facts.append(event.seq)
            self._add(case, event.t, how)

    def forget(self, key: Hashable) -> None:
        """It was no case."""
        self.going_on.pop(key, None)

    def keys(self, is_meant: Callable[[Case], bool]) -> list[Hashable]:
        """The keys of the cases that go on and are meant."""
        return [key for key, case in self.going_on.items() if is_meant(case)]

    def pass_silence(self, from_us: int) -> None:
        """Nothing is known from this moment on, for a while: who waits may have waited in vain."""
        for key in self.keys(lambda case: from_us - case.from_us < case.patience_us):
            self.forget(key)

    def finish(self, now_us: int) -> None:
        """The trace is over; what goes on has no end."""
        for case in self.going_on.values():
            if now_us - case.from_us >= case.patience_us:
                self._add(case, None, NOT_ENDED)
        self.going_on.clear()

    def _add(self, case: Case, to_us: int | None, how: str) -> None:
        facts = tuple(sorted(set(case.facts)))
        self.cases.append(
            Diagnosed(
                self.name, case.broker, case.partitions, case.from_us, to_us, case.seen, how,
                self.cure, facts,
            )
        )  # fmt: skip


def name_of(kind: type[Diagnosis]) -> str:
    """The hazard's name in the catalogue; without a ticket, as invariants' recognisers have it."""
    name = kind.__module__.rpartition(".")[2]
    if name.startswith(("kafka_", "kip_")):
        return re.sub(r"^[a-z]+", lambda ticket: ticket[0].upper(), name.replace("_", "-"))
    return name.replace("_", " ")


@cache
def diagnoses() -> tuple[type[Diagnosis], ...]:
    """All of them; found by a scan of this package."""
    return tuple(sorted(classes_of("emulator.forensics.diagnoses", Diagnosis), key=name_of))


class Diagnoses:
    """All diagnoses of one trace. Hears each event after `state` has."""

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
        """All cases, in order of time; the trace is over."""
        for one in self.all:
            one.finish(max(self.state.clock.now_us, self._coverage.until_us))
        cases = [case for one in self.all for case in one.cases]
        return sorted(cases, key=lambda case: (case.from_us, case.name, case.broker))


def diagnose(events: Iterable[AnyEvent], coverage: Coverage | None = None) -> list[Diagnosed]:
    """All that is seen in a trace, in order of time."""
    state = TraceState(level_histories=False)
    every = Diagnoses(state, coverage)
    for event in events:
        state(event)
        every(event)
    return every.finish()
