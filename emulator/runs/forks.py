"""Work in forked children: results come through pipes, and no child is left behind.

A fork copies what cannot be copied otherwise (a run's coroutines) and costs milliseconds. A child
may fork in turn: ending it ends all its descendants, and each parent reaps its own children. Only
the first parent handles Ctrl-C. A child whose parent is gone fails at its next message. This module
must not know what the work is.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Generic, NoReturn, Self, TypeVar

A = TypeVar("A")
B = TypeVar("B")

_LENGTH = struct.Struct("<Q")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failed(Exception):
    """A child ended without a result."""


class _Terminated(BaseException):
    """The parent ends this child."""


class _Raised:
    """A message with an exception."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Blocks signals meanwhile: an interruption could leave a forked child behind that is not yet
    recorded, or end one twice."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Child(Generic[B]):
    """One forked process that computes one result."""

    def __init__(self, work: Callable[[], B]) -> None:
        self.reads, writes = os.pipe()
        gc.freeze()  # The collector would touch, and so copy, all shared pages.
        with _signals_wait():
            with warnings.catch_warnings():
                # Python 3.12 warns where threads exist; the child uses none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.pid = os.fork()
            if self.pid == 0:
                _run_child(work, self.reads, writes)
        os.close(writes)

    def result(self) -> B:
        """The return value of the work, or its exception."""
        length = _LENGTH.unpack(_read(self.reads, _LENGTH.size))[0]
        message: B | _Raised = pickle.loads(_read(self.reads, length))
        if isinstance(message, _Raised):
            raise message.error
        return message

    def end(self) -> None:
        """End the child and all its descendants, if it still runs."""
        with _signals_wait():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            os.close(self.reads)
            os.waitpid(self.pid, 0)


class Pool(Generic[B]):
    """At most `jobs` children in parallel. Use as a context manager, which ends those left."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._running: dict[int, tuple[int, Child[B]]] = {}

    def __len__(self) -> int:
        """The number of running children."""
        return len(self._running)

    @property
    def has_room(self) -> bool:
        return len(self._running) < self._jobs

    def start(self, index: int, work: Callable[[], B]) -> None:
        """Start `work` in a child; its result is returned with this index."""
        with _signals_wait():
            child = Child(work)
            self._running[child.reads] = index, child

    def results(
        self, timeout_s: float | None = None, wake_up: Sequence[int] = ()
    ) -> Iterator[tuple[int, B]]:
        """Wait until a child ends, a file of `wake_up` is readable, or the timeout expires.
        Returns (index, result) of each child that has ended. Raises what its work raised."""
        with selectors.DefaultSelector() as selector:
            for file in (*self._running, *wake_up):
                selector.register(file, selectors.EVENT_READ)
            ready = [key.fd for key, _ in selector.select(timeout_s)]
        for reads in ready:
            if reads in self._running:
                index, child = self._running[reads]
                result = child.result()
                with _signals_wait():
                    del self._running[reads]
                    child.end()
                yield index, result

    def close(self) -> None:
        """End all running children."""
        with _signals_wait():
            while self._running:
                _, (_, child) = self._running.popitem()
                child.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def in_child(work: Callable[[], B]) -> B:
    """The result of `work`, done in a copy of this process. The copy ends before this function
    does, in any case."""
    with Pool[B](1) as pool:
        pool.start(0, work)
        ((_, result),) = pool.results()
        return result


def in_children(items: Iterable[A], work: Callable[[A], B], jobs: int) -> Iterator[tuple[int, B]]:
    """Run `work` on every item, each in its own child, at most `jobs` in parallel. Yields (index,
    result) as children end. An item is taken only when its child is forked. No child is left when
    the generator ends."""
    waiting = iter(enumerate(items))
    with Pool[B](jobs) as pool:
        while True:
            while pool.has_room and (following := next(waiting, None)) is not None:
                index, item = following
                pool.start(index, partial(work, item))
            if not pool:
                return
            yield from pool.results()


def in_order(items: Iterable[A], work: Callable[[A], B], jobs: int) -> Iterator[B]:
    """Like `in_children`, in the order of the items."""
    early: dict[int, B] = {}
    following = 0
    for index, result in in_children(items, work, jobs):
        early[index] = result
        while following in early:
            yield early.pop(following)
            following += 1


def _run_child(work: Callable[[], object], reads: int, writes: int) -> NoReturn:
    """Run the work, send the result, and exit without the parent's exit handlers and buffers."""
    code = 1
    try:
        os.close(reads)
        signal.signal(signal.SIGTERM, _on_terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _send(writes, _result(work))
        code = 0
    except (_Terminated, BrokenPipeError):
        pass
    finally:
        os._exit(code)


def _on_terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # A second one must not interrupt the end.
    raise _Terminated


def _result(work: Callable[[], object]) -> object:
    """The return value or the exception; an exception that cannot be pickled is replaced by its
    text."""
    try:
        return work()
    except BrokenPipeError:
        raise  # The parent is gone.
    except Exception as error:  # noqa: BLE001
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001
            return _Raised(Failed(f"{type(error).__name__}: {error}"))
        return _Raised(error)


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
