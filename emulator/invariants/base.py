"""The base class of invariants, and their registry.

An invariant is one file in this package with one subclass of `Invariant`. Its docstring is the
sentence that must hold; the file's name is the invariant's name. It receives events through
`on_...` methods and calls `violated` with a struct of its own: the contradicting facts, and the
sentence made from them. An invariant with `liveness` states what must have happened once the
cluster was undisturbed for a while; it is evaluated only then (`at_end`). Invariants know no world:
a trace in progress and a stored trace are the same to them.
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
    """A violated invariant. `facts` are the `seq` of the two contradicting events, the earlier one
    first (-1: none). `follows_from` is a violation that makes this one inevitable.

    Each invariant defines a subclass for each thing that can be wrong. Recognisers read its fields.
    People read `sentence`, with field names in braces.
    """

    sentence: ClassVar[str]

    facts: tuple[int, int]
    partition: TopicPartition | None = None
    broker: int = 0
    follows_from: Violation | None = None

    @property
    def invariant(self) -> str:
        """The name of its invariant."""
        return _name_of_module(type(self).__module__)

    @property
    def text(self) -> str:
        """The sentence for people; never parsed."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        # Show a tuple of brokers as Kafka does; a TopicPartition has its own text.
        shown = {k: list(v) if type(v) is tuple else v for k, v in values.items()}
        return self.sentence.format_map(shown)


class Invariant:
    """One predicate, checked against one trace."""

    liveness: ClassVar[bool] = False
    """Evaluated at the end, through `lacking`."""

    def __init__(self, state: CoreState) -> None:
        self.state = state
        self.violations: list[Violation] = []
        self._reported: set[tuple[TopicPartition | None, int]] = set()
        self.begin()

    def begin(self) -> None:
        """Initialise its state."""

    def lacking(self) -> Iterator[Violation]:
        """Liveness: what is still missing."""
        return iter(())

    def violated(self, violation: Violation) -> None:
        """Records a violation. Only the first one of a partition and broker counts, because others
        follow from it."""
        subject = violation.partition, violation.broker
        if subject not in self._reported:
            self._reported.add(subject)
            self.violations.append(violation)


def name_of(kind: type[Invariant]) -> str:
    """The file's name with spaces: `leader in isr`."""
    return _name_of_module(kind.__module__)


def _name_of_module(module: str) -> str:
    return module.rpartition(".")[2].replace("_", " ")


@cache
def invariants() -> dict[str, type[Invariant]]:
    """All invariants by name, found by a scan of this package."""
    kinds = {name_of(kind): kind for kind in classes_of("emulator.invariants", Invariant)}
    return dict(sorted(kinds.items()))


class Monitor:
    """All invariants of one trace, as a listener on its sink.

    With `state`, the caller must pass each event to it first; without, the monitor has its own.
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
        """The handlers for this kind of event, for the sink's dispatch."""
        return self._dispatch.of_kind(kind)

    @property
    def violations(self) -> list[Violation]:
        """Safety violations so far, in order of detection."""
        every = [violation for one in self.held for violation in one.violations]
        return sorted(every, key=lambda violation: violation.facts[1])

    def lacking(self) -> list[Violation]:
        """What the liveness invariants still miss."""
        return [violation for one in self.held for violation in one.lacking()]

    @property
    def converged(self) -> bool:
        """Whether all liveness invariants are satisfied."""
        return not any(True for one in self.held for _ in one.lacking())

    def at_end(self) -> list[Violation]:
        """All violations once the trace is over, including liveness."""
        return [*self.violations, *self.lacking()]


def check(events: Iterable[AnyEvent], *, liveness: bool = False) -> list[Violation]:
    """Check all invariants against a stored trace."""
    monitor = Monitor(liveness=liveness)
    for event in events:
        monitor(event)
    return monitor.at_end()


def chain_of(events: Sequence[AnyEvent], seq: int) -> list[AnyEvent]:
    """The chain of causes of an event, oldest first, ending with the event itself; at most
    CHAIN_MAX events."""
    chain: list[AnyEvent] = []
    while 0 <= seq < len(events) and len(chain) < CHAIN_MAX:
        chain.append(events[seq])
        seq = events[seq].cause
    return chain[::-1]
