"""Dispatch of events to handler methods: `on_isr_updated` is called with each `isr_updated`.

The dispatch table is made once from the closed vocabulary. A method `on_...` that matches no event
is a programming error and raises at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_args

from emulator.trace.events import AnyEvent

_CLASSES: dict[str, type] = {str(c.__struct_config__.tag): c for c in get_args(AnyEvent)}

Handler = Callable[[Any], None]


def handlers_of(part: object) -> dict[type, Handler]:
    """The event classes that `part` handles, with its methods for them."""
    names = [name for name in dir(part) if name.startswith("on_")]
    unknown = [name for name in names if name.removeprefix("on_") not in _CLASSES]
    assert not unknown, f"{type(part).__name__}: no such event: {unknown}"
    return {_CLASSES[name.removeprefix("on_")]: getattr(part, name) for name in names}


class Dispatch:
    """Calls the handlers of several parts for each event, in the order of the parts."""

    __slots__ = ("_handlers",)

    def __init__(self, parts: Iterable[object]) -> None:
        self._handlers: dict[type, tuple[Handler, ...]] = {}
        for part in parts:
            for kind, handler in handlers_of(part).items():
                self._handlers[kind] = (*self._handlers.get(kind, ()), handler)

    def of_kind(self, kind: type) -> tuple[Handler, ...]:
        """The handlers for this kind of event."""
        return self._handlers.get(kind, ())

    def __call__(self, event: AnyEvent) -> None:
        for handler in self._handlers.get(type(event), ()):
            handler(event)
