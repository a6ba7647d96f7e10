"""What can happen next, in words: which thread, or what is called back on whose behalf.

Owns the words of a choice, by which a schedule can be read, and found again in a run that is a
little different. They must come out the same in every process: no addresses, no numbers of ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from emulator.kernel.choices import owner_of
from emulator.kernel.scheduler import Action, Runnable, Task


def words_of(item: Runnable) -> str:
    """`broker-1 kafka-request-handler-3: queue`, `broker-2 data-plane-…-0: FetchRequest`."""
    place = f"{item.process.name} {item.thread}"
    if isinstance(item, Task):
        return f"{place}: {item.waiting_for}"
    assert isinstance(item, Action)
    return f"{place}: {_call(item)}"


def _call(item: Action) -> str:
    call: Any = item._fn
    about: list[str] = []
    while isinstance(call, partial):
        about += [_name(argument) for argument in call.args]
        call = call.func
    owner = owner_of(item)
    whose = _whose(owner)
    name = getattr(call, "__name__", type(call).__name__).strip("_<>")
    return " ".join(filter(None, (name, *about, whose)))


def _name(argument: Any) -> str:
    """Of what a message or an exception is; nothing of anything else."""
    if isinstance(argument, msgspec.Struct | BaseException):
        return type(argument).__name__
    return argument if isinstance(argument, str) else ""


def _whose(owner: object) -> str:
    """The client on whose behalf it is, where the owner says so."""
    client = getattr(owner, "client", None)
    packets = getattr(owner, "_packets", None)
    if client is None and packets is not None:
        client = getattr(getattr(owner, "_link", None), "client", None)
        if packets:
            client = f"{type(packets[0][1]).__name__} {client}"
    return f"of {client}" if isinstance(client, str) else ""
