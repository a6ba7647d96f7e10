"""A value that comes once, and threads that wait for it.

A struct, and so in a file of its own: `sync`, whose others it belongs to, is a module that may be
compiled (`emulator.compiled`).
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from emulator.kernel.scheduler import SUSPEND, Kernel, Task

T = TypeVar("T")


_PENDING: Any = object()


class Promise(msgspec.Struct, Generic[T], eq=False):
    """A value that comes once (CompletableFuture, CountDownLatch(1) with a result). A struct, since
    every request makes one."""

    _kernel: Kernel
    _value: T = _PENDING
    _waiters: list[Task] = []
    cause: int = -1

    @property
    def done(self) -> bool:
        return self._value is not _PENDING

    def resolve(self, value: T) -> None:
        """Give the value; a second one is ignored (the first answer counts)."""
        if self._value is not _PENDING:
            return
        self._value = value
        self.cause = self._kernel.cause
        for task in self._waiters:
            task.cause = self.cause
            self._kernel.make_ready(task)
        self._waiters.clear()

    async def wait(self) -> T:
        """Block until the value is there."""
        if self._value is _PENDING:
            task = self._kernel.this_task()
            task.waiting_for = "promise"
            self._waiters.append(task)
            while self._value is _PENDING:
                await SUSPEND
        return self._value
