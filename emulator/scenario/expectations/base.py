"""The base class of expectations, and their registry.

A kind is one file in this package with one subclass of `Check`; the file's name is the kind's name.
`forms` are its sentences. It may receive events through `on_...` methods. At the end it answers
*held*, *not held*, or *unknown*: the run never reached the situation. For a run without any action
on the cluster it must answer *not held* or *unknown*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import ClassVar

import msgspec

from emulator.registry import classes_of
from emulator.scenario.errors import UserError
from emulator.scenario.expectations.forms import Form, compiled, matched
from emulator.scenario.schema import Expectation
from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch, Handler
from emulator.trace.state import TraceState

UNSEEN = "what the logs hold was not seen"


class Finding(msgspec.Struct, frozen=True):
    """An expectation's result (None: unknown), and the observation."""

    held: bool | None
    seen: str


class Check:
    """One expectation, checked against one run."""

    forms: ClassVar[tuple[str, ...]]
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The phrases that a slot accepts, if the check defines its own kind of slot."""
    reads_levels: ClassVar[bool] = False
    """Whether it reads the history of log end offsets and high watermarks (`water_levels`), which
    is kept only if some check needs it."""

    def __init__(self, arguments: Mapping[str, object], state: TraceState) -> None:
        self.state = state
        self.take(**arguments)

    def take(self, **arguments: object) -> None:
        """Store the form's arguments as attributes."""
        for name, value in arguments.items():
            setattr(self, name, value)

    @property
    def parts(self) -> tuple[object, ...]:
        """The parts that receive events, in order."""
        return (self,)

    def at_end(self) -> Finding:
        """The result; called when the run is over."""
        raise AssertionError(f"{type(self).__name__} has no answer")


@cache
def checks() -> dict[str, type[Check]]:
    """All kinds by name, found by a scan of this package."""
    kinds = classes_of("emulator.scenario.expectations", Check)
    return dict(sorted((kind.__module__.rpartition(".")[2], kind) for kind in kinds))


@cache
def forms() -> dict[str, tuple[Form, ...]]:
    """The sentence forms of each kind."""
    return {
        name: tuple(compiled(text, kind.words) for text in kind.forms)
        for name, kind in checks().items()
    }


def parse(text: str) -> Expectation:
    """Parse one sentence. Raises UserError (without a place) if it matches no form."""
    for name, of_kind in forms().items():
        for form in of_kind:
            arguments = matched(form, text)
            if arguments is not None:
                return Expectation(" ".join(text.split()), name, arguments)
    # Suggest the forms that share most words with the sentence.
    words = set(text.split())
    every = [form for of_kind in forms().values() for form in of_kind]
    nearest = sorted(every, key=lambda form: -len(words & set(form.shown.split())))[:3]
    shown = " | ".join(form.shown for form in nearest)
    raise UserError(f"{text!r} is no expectation; nearest forms: {shown}")


def mentioned(expectation: Expectation) -> list[tuple[str, object]]:
    """The objects that the sentence names, as (kind of slot, value): ("broker", 2)."""
    for form in forms()[expectation.check]:
        arguments = matched(form, expectation.text)
        if arguments is not None:
            return [(form.slots[name], value) for name, value in arguments.items()]
    return []


class Judge:
    """Checks the expectations of one scenario against one run, as a listener on its sink."""

    def __init__(self, expectations: Iterable[Expectation], state: TraceState) -> None:
        """`state` must receive each event before this does."""
        self.expectations = tuple(expectations)
        self.checks = [checks()[e.check](e.arguments, state) for e in self.expectations]
        self._dispatch = Dispatch(part for check in self.checks for part in check.parts)

    def __call__(self, event: AnyEvent) -> None:
        self._dispatch(event)

    def of_kind(self, kind: type) -> tuple[Handler, ...]:
        """The handlers for this kind of event, for the sink's dispatch."""
        return self._dispatch.of_kind(kind)

    def findings(self) -> list[tuple[Expectation, Finding]]:
        """Every expectation with its result; called when the run is over."""
        pairs = zip(self.expectations, self.checks, strict=True)
        return [(expectation, check.at_end()) for expectation, check in pairs]


def verdict(answers: Iterable[bool | None]) -> bool | None:
    """False if one did not hold; otherwise None if one is unknown; otherwise True."""
    every = list(answers)
    if False in every:
        return False
    return None if None in every else True
