"""Labels of the things that can happen next: the thread, or the callback and its owner.

Owns how a choice's label is composed. Labels make a schedule readable, and identify a choice in a
slightly different run. Their parts are declared with the callback (`zk.wire.labelled`, and the
`on_behalf_of` of the method's object), so that renaming a method does not change them. They are the
same in every process: without addresses or internal numbers.
"""

from __future__ import annotations

from functools import partial

import msgspec

from emulator.kernel.choices import owner_of
from emulator.kernel.scheduler import Callback, Runnable, Task

UNDECLARED = "call"


def label_of(item: Runnable) -> str:
    """`broker-1 kafka-request-handler-3: queue`, `broker-2 main-EventThread: arrive of Ping
    broker-2`."""
    place = f"{item.process.name} {item.thread}"
    if isinstance(item, Task):
        return f"{place}: {item.waiting_for}"
    assert isinstance(item, Callback)
    call: object = item._fn
    words: list[str] = []
    while isinstance(call, partial):
        for argument in call.args:
            if isinstance(argument, msgspec.Struct | BaseException):
                words.append(type(argument).__name__)  # a message or an exception: its type
            elif isinstance(argument, str):
                words.append(argument)
        call = call.func
    label: str = getattr(call, "label", UNDECLARED)
    owner: str = getattr(owner_of(item), "on_behalf_of", "")
    return f"{place}: {' '.join(filter(None, (label, *words, owner and f'of {owner}')))}"
