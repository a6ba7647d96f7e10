"""Work done in forked children: their results come through pipes, and none of them is left.

A fork copies what cannot be copied otherwise (a run's coroutines) and costs milliseconds. A child
may have children of its own: whoever ends a child ends all below it, each reaped by its parent.
Ctrl-C is for the first parent alone; a child whose parent is gone fails at its next message. This
module must not know what the work is.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn, TypeVar

A = TypeVar("A")
B = TypeVar("B")

_LENGTH = struct.Struct("<Q")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failed(Exception):
    """A child died without a result."""


class _Ended(BaseException):
    """A child is told to end."""


class _Raised:
    """A message that is an exception."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Child:
    """One forked process that computes one result."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.reads, writes = os.pipe()
        gc.freeze()  # The collector would touch, and so copy, all that the two share.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self.pid = _fork()
            if self.pid == 0:
                _be_child(work, self.reads, writes)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writes)

    def result(self) -> Any:
        """What the work returned; raises what it raised."""
        length = _LENGTH.unpack(_read(self.reads, _LENGTH.size))[0]
        message = pickle.loads(_read(self.reads, length))
        if isinstance(message, _Raised):
            raise message.error
        return message

    def end(self) -> None:
        """End it, and all that it has forked, if it still runs."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            os.close(self.reads)
            os.waitpid(self.pid, 0)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_child(work: Callable[[], B]) -> B:
    """The result of `work`, done in a copy of this process. Whoever is told to end meanwhile ends
    that copy first: signals wait until it is known here."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    child = Child(work)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        result: B = child.result()
        return result
    finally:
        child.end()


def in_children(items: Iterable[A], work: Callable[[A], B], jobs: int) -> Iterator[tuple[int, B]]:
    """`work` of every item, each in a child of its own, `jobs` at a time: (index, result) as they
    come. An item is asked for when its child is forked. However the caller ends, no child is
    left."""
    waiting = iter(enumerate(items))
    running: dict[int, tuple[int, Child]] = {}
    try:
        while _fill(running, waiting, work, jobs):
            for reads in _readable(running):
                index, child = running[reads]
                result = child.result()
                del running[reads]
                child.end()
                yield index, result
    finally:
        for _, child in running.values():
            child.end()


def _fill(
    running: dict[int, tuple[int, Child]],
    waiting: Iterator[tuple[int, A]],
    work: Callable[[A], B],
    jobs: int,
) -> int:
    """Start children while there are items and room; how many run."""
    while len(running) < jobs and (following := next(waiting, None)) is not None:
        index, item = following
        child = Child(lambda item=item: work(item))  # type: ignore[misc]
        running[child.reads] = index, child
    return len(running)


def _readable(files: dict[int, tuple[int, Child]]) -> list[int]:
    """Wait for one of the files at least."""
    with selectors.DefaultSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ)
        return [key.fd for key, _ in selector.select()]


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns where threads exist; the child uses none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_child(work: Callable[[], object], reads: int, writes: int) -> NoReturn:
    """Work, send the result, and end without the parent's exit handlers and buffers."""
    code = 1
    try:
        os.close(reads)
        signal.signal(signal.SIGTERM, _told_to_end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _send(writes, _result(work))
        code = 0
    except (_Ended, BrokenPipeError):
        pass
    finally:
        os._exit(code)


def _told_to_end(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Once: what comes now must not be disturbed.
    raise _Ended


def _result(work: Callable[[], object]) -> object:
    try:
        return work()
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001
        return _Raised(_portable(error))


def _portable(error: Exception) -> Exception:
    """The error itself where it can cross the pipe, else its words."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001
        return Failed(f"{type(error).__name__}: {error}")
    return error


def _send(to: int, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    data = _LENGTH.pack(len(data)) + data
    while data:
        data = data[os.write(to, data) :]


def _read(of: int, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = os.read(of, min(length - len(data), 1 << 20))
        if not part:
            raise Failed("a child process died without a result")
        data += part
    return bytes(data)
