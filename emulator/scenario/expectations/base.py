"""What an expectation is, and the registry of the kinds that there are.

A kind is one file in this package with one subclass of `Check`. Its `forms` say how it is written;
it sees every event of a run through `on_...` methods if it has any, and at the end answers *held*,
*not held*, or *unknown*: the run never came to what it speaks of. The file's name is the kind's
name. It must answer *not held* or *unknown* for a run in which nothing is done to the cluster.
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
    """An expectation's answer (None: unknown), and what was seen."""

    held: bool | None
    seen: str


class Check:
    """One expectation, followed through one run."""

    forms: ClassVar[tuple[str, ...]]
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The words that a slot of the forms can hold, where its kind is the check's own."""
    reads_levels: ClassVar[bool] = False
    """It asks for earlier log end offsets and high watermarks (`water_levels`), which are kept only
    where some check does."""

    def __init__(self, arguments: Mapping[str, object], state: TraceState) -> None:
        self.state = state
        self.take(**arguments)

    def take(self, **arguments: object) -> None:
        """Keep the arguments of the form."""
        for name, value in arguments.items():
            setattr(self, name, value)

    @property
    def parts(self) -> tuple[object, ...]:
        """What has to hear events for it, in order."""
        return (self,)

    def at_end(self) -> Finding:
        """The answer, when the run is over."""
        raise AssertionError(f"{type(self).__name__} has no answer")


@cache
def checks() -> dict[str, type[Check]]:
    """All kinds by name; found by a scan of this package."""
    kinds = classes_of("emulator.scenario.expectations", Check)
    return dict(sorted((kind.__module__.rpartition(".")[2], kind) for kind in kinds))


@cache
def forms() -> dict[str, tuple[Form, ...]]:
    """How each kind is written."""
    return {
        name: tuple(compiled(text, kind.words) for text in kind.forms)
        for name, kind in checks().items()
    }


def parse(text: str) -> Expectation:
    """Read one sentence. UserError (without a place) when it has none of the forms."""
    for name, of_kind in forms().items():
        for form in of_kind:
            arguments = matched(form, text)
            if arguments is not None:
                return Expectation(" ".join(text.split()), name, arguments)
    # The forms that share most words with the sentence.
    words = set(text.split())
    every = [form for of_kind in forms().values() for form in of_kind]
    nearest = sorted(every, key=lambda form: -len(words & set(form.shown.split())))[:3]
    shown = " | ".join(form.shown for form in nearest)
    raise UserError(f"{text!r} is no expectation; nearest forms: {shown}")


def mentioned(expectation: Expectation) -> list[tuple[str, object]]:
    """What the sentence names: (kind of slot, value), such as ("broker", 2)."""
    for form in forms()[expectation.check]:
        arguments = matched(form, expectation.text)
        if arguments is not None:
            return [(form.slots[name], value) for name, value in arguments.items()]
    return []


class Judge:
    """Holds the expectations of one scenario against one run, as a listener on its sink."""

    def __init__(self, expectations: Iterable[Expectation], state: TraceState) -> None:
        """`state` must hear each event before this does."""
        self.expectations = tuple(expectations)
        self.checks = [checks()[e.check](e.arguments, state) for e in self.expectations]
        self._dispatch = Dispatch(part for check in self.checks for part in check.parts)

    def __call__(self, event: AnyEvent) -> None:
        self._dispatch(event)

    def of_kind(self, kind: type) -> tuple[Handler, ...]:
        """For a sink that calls who wants an event without asking each time."""
        return self._dispatch.of_kind(kind)

    def findings(self) -> list[tuple[Expectation, Finding]]:
        """Every expectation with its answer; the run is over."""
        pairs = zip(self.expectations, self.checks, strict=True)
        return [(expectation, check.at_end()) for expectation, check in pairs]


def verdict(answers: Iterable[bool | None]) -> bool | None:
    """False if one did not hold, else None if one is unknown, else True."""
    every = list(answers)
    if False in every:
        return False
    return None if None in every else True
