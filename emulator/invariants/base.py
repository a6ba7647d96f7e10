"""What an invariant is, and the registry of them.

An invariant is one file in this package with one subclass of `Invariant`: its docstring is the
sentence that must hold, its file's name the invariant's name. It hears events through `on_...`
methods, keeps what it needs, and calls `violated` with a struct of its own: the facts that
contradict each other, and the sentence that they make.
One with `liveness` says what must have come about when nothing has disturbed the cluster for a
while; it is only asked (`at_end`) where that is known. Knows no world: a trace that grows and one
that was stored are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import ClassVar

import msgspec

from emulator.registry import classes_of
from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch, Handler
from emulator.trace.state import CoreState
from emulator.trace.values import TopicPartition

CHAIN_MAX = 12


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """An invariant that did not hold: `facts` are the numbers (seq) of the two events that
    contradict each other, the earlier one first (-1: there is none).

    Each invariant has subclasses beside it, one for each thing that can be wrong: their fields are
    what recognisers read, `sentence` is what people read, with fields' names in braces.
    """

    sentence: ClassVar[str]

    facts: tuple[int, int]
    partition: TopicPartition | None = None
    broker: int = 0

    @property
    def invariant(self) -> str:
        """The name of the invariant that it belongs to."""
        return _name_of_module(type(self).__module__)

    @property
    def text(self) -> str:
        """The sentence, for people: nothing reads it back."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        # A tuple of brokers is shown as Kafka shows it; a TopicPartition has words of its own.
        shown = {k: list(v) if type(v) is tuple else v for k, v in values.items()}
        return self.sentence.format_map(shown)


class Invariant:
    """One predicate, held against one trace."""

    liveness: ClassVar[bool] = False
    """Judged at the end, from what `lacking` says then."""

    def __init__(self, state: CoreState) -> None:
        self.state = state
        self.violations: list[Violation] = []
        self._reported: set[tuple[TopicPartition | None, int]] = set()
        self.begin()

    def begin(self) -> None:
        """Make what it keeps."""

    def lacking(self) -> Iterator[Violation]:
        """Liveness: what has not come about yet."""
        return iter(())

    def violated(self, violation: Violation) -> None:
        """It does not hold: kept once for a partition and a broker, since the rest follows."""
        subject = violation.partition, violation.broker
        if subject not in self._reported:
            self._reported.add(subject)
            self.violations.append(violation)


def name_of(kind: type[Invariant]) -> str:
    """The file's name, with blanks: `leader in isr`."""
    return _name_of_module(kind.__module__)


def _name_of_module(module: str) -> str:
    return module.rpartition(".")[2].replace("_", " ")


@cache
def invariants() -> dict[str, type[Invariant]]:
    """All invariants by name; found by a scan of this package."""
    kinds = {name_of(kind): kind for kind in classes_of("emulator.invariants", Invariant)}
    return dict(sorted(kinds.items()))


class Monitor:
    """All invariants of one trace, as a listener on its sink.

    A `state` hears each event before this does, from somebody else; without one it keeps its own.
    """

    def __init__(
        self, state: CoreState | None = None, *, safety: bool = True, liveness: bool = False
    ) -> None:
        self.state = state or CoreState()
        is_judged = {False: safety, True: liveness}
        self.held = [kind(self.state) for kind in invariants().values() if is_judged[kind.liveness]]
        own = () if state is not None else self.state.parts
        self.parts: tuple[object, ...] = (*own, *self.held)
        self._dispatch = Dispatch(self.parts)

    def __call__(self, event: AnyEvent) -> None:
        self._dispatch(event)

    def of_kind(self, kind: type) -> tuple[Handler, ...]:
        """For a sink that calls who wants an event without asking each time."""
        return self._dispatch.of_kind(kind)

    @property
    def violations(self) -> list[Violation]:
        """What did not hold so far, in the order in which it was seen."""
        every = [violation for one in self.held for violation in one.violations]
        return sorted(every, key=lambda violation: violation.facts[1])

    def lacking(self) -> list[Violation]:
        """What the liveness among them still miss."""
        return [violation for one in self.held for violation in one.lacking()]

    @property
    def converged(self) -> bool:
        """All that the liveness among them want has come about."""
        return not any(True for one in self.held for _ in one.lacking())

    def at_end(self) -> list[Violation]:
        """The trace is over: liveness is judged too."""
        return [*self.violations, *self.lacking()]


def check(events: Iterable[AnyEvent], *, liveness: bool = False) -> list[Violation]:
    """Hold all invariants against a stored trace."""
    monitor = Monitor(liveness=liveness)
    for event in events:
        monitor(event)
    return monitor.at_end()


def chain_of(events: Sequence[AnyEvent], seq: int) -> list[AnyEvent]:
    """What led to an event, the first cause first and the event itself last; the nearest
    CHAIN_MAX."""
    chain: list[AnyEvent] = []
    while 0 <= seq < len(events) and len(chain) < CHAIN_MAX:
        chain.append(events[seq])
        seq = events[seq].cause
    return chain[::-1]
