"""Work done in forked children: one child for one piece of work, its result through a pipe.

A fork copies what cannot be copied otherwise (a run's coroutines) and costs milliseconds. Owns
that no child outlives its parent's interest in it: results are read or the child is killed, and a
child whose parent is gone fails at its next write. It must not know what the work is.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")

_LENGTH = struct.Struct("<Q")


class Failed(Exception):
    """A child died without a result."""


class Child:
    """One forked process that sends messages until it ends."""

    def __init__(self, work: Callable[[Callable[[Any], None]], None]) -> None:
        """`work` runs in the child and is given the function that sends a message."""
        self.reads, writes = os.pipe()
        gc.freeze()
        self.pid = _fork()
        if self.pid == 0:
            os.close(self.reads)
            _end_with(lambda: work(lambda message: _send(writes, message)))
        os.close(writes)

    def receive(self) -> Any:
        """The next message; raises what the child raised."""
        header = _read(self.reads, _LENGTH.size)
        message = pickle.loads(_read(self.reads, _LENGTH.unpack(header)[0]))
        if isinstance(message, _Raised):
            raise message.error
        return message

    def end(self) -> None:
        """Kill it if it still runs; nothing of it is left."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reads)
        os.waitpid(self.pid, 0)


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns where threads exist; the child uses none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _end_with(work: Callable[[], None]) -> None:
    """Run the child's work and end without any of the parent's exit handlers and buffers."""
    code = 1
    try:
        work()
        code = 0
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        os._exit(code)


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


def in_children(items: Sequence[A], work: Callable[[A], B], jobs: int) -> Iterator[tuple[int, B]]:
    """`work` of every item, each in a child of its own, `jobs` at a time: (index, result) as they
    come. However the caller ends, no child is left."""
    waiting = iter(enumerate(items))
    running: dict[int, tuple[int, Child]] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while _fill(running, waiting, work, jobs, selector):
                for key, _ in selector.select():
                    index, child = running[key.fd]
                    result = child.receive()
                    selector.unregister(key.fd)
                    del running[key.fd]
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
    selector: selectors.BaseSelector,
) -> int:
    """Start children while there are items and room; how many run."""
    while len(running) < jobs and (following := next(waiting, None)) is not None:
        index, item = following
        child = Child(lambda send, item=item: send(_result(work, item)))  # type: ignore[misc]
        running[child.reads] = index, child
        selector.register(child.reads, selectors.EVENT_READ)
    return len(running)


def _result(work: Callable[[A], B], item: A) -> object:
    try:
        return work(item)
    except Exception as error:  # noqa: BLE001
        return _Raised(_portable(error))


def _portable(error: Exception) -> Exception:
    """The error itself where it can cross the pipe, else its words."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001
        return Failed(f"{type(error).__name__}: {error}")
    return error
