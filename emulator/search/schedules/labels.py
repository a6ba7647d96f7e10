"""What can happen next, in words: which thread, or what is called back on whose behalf.

Owns how a choice's label is put together, by which a schedule can be read, and found again in a run
that is a little different. Its parts are declared with the call-back (`zk.wire.labelled`, and the
`on_behalf_of` of the object whose method it is), so that they stay when a method is renamed. They
come out the same in every process: no addresses, no numbers of ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from emulator.kernel.choices import owner_of
from emulator.kernel.scheduler import Action, Runnable, Task

UNDECLARED = "call"


def label_of(item: Runnable) -> str:
    """`broker-1 kafka-request-handler-3: queue`, `broker-2 main-EventThread: arrive of Ping
    broker-2`."""
    place = f"{item.process.name} {item.thread}"
    if isinstance(item, Task):
        return f"{place}: {item.waiting_for}"
    assert isinstance(item, Action)
    call: Any = item._fn
    about: list[str] = []
    while isinstance(call, partial):
        about += [_name(argument) for argument in call.args]
        call = call.func
    label: str = getattr(call, "label", UNDECLARED)
    whose: str = getattr(owner_of(item), "on_behalf_of", "")
    return f"{place}: {' '.join(filter(None, (label, *about, whose and f'of {whose}')))}"


def _name(argument: Any) -> str:
    """Of what a message or an exception is; nothing of anything else."""
    if isinstance(argument, msgspec.Struct | BaseException):
        return type(argument).__name__
    return argument if isinstance(argument, str) else ""
