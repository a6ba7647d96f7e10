"""Leftovers that a run must not have: our threads, child processes, open files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 30.0


def children(pid: str | int = "self") -> set[int]:
    """Processes that this one has started and not yet waited for."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for task in tasks for child in task.read_text().split()}


def alive(pid: int) -> bool:
    """Is there such a process, and not merely its name in the table?"""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    """The process has ended, or does so within our patience; it need not be our child."""
    import os
    import select

    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(PATIENCE_S * 1000))
    finally:
        os.close(handle)


@contextmanager
def nothing_stays() -> Iterator[None]:
    """Whatever the block did, it took everything away with it."""
    threads, before, files = set(threading.enumerate()), children(), _open_files()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(PATIENCE_S)
    assert set(threading.enumerate()) <= threads
    assert children() <= before
    left = [name for name in _open_files() if name not in files]
    assert left == []


def _open_files() -> list[str]:
    """The targets of open descriptors: `socket:[123]`, a path."""
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(descriptor.readlink()))
        except OSError:
            continue  # the one through which we look
    return names
