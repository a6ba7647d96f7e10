"""Processor time of the processes that a benchmark starts."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def children_s() -> float:
    """Of the children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


LOOK_EVERY_S = 0.05


def run(command: Sequence[str]) -> tuple[float, float]:
    """A command until it ends: seconds by the clock, and of the processors. What it starts counts,
    also what it does not wait for (Spark's JVM ends by itself). CalledProcessError."""
    began_s = time.monotonic()
    used: dict[int, float] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as ran:
        while ran.returncode is None:
            for pid in _family(ran.pid):
                used[pid] = max(used.get(pid, 0.0), running_s(pid))
            with suppress(subprocess.TimeoutExpired):
                ran.wait(LOOK_EVERY_S)
        took_s = time.monotonic() - began_s
    if ran.returncode:
        raise subprocess.CalledProcessError(ran.returncode, command)
    return took_s, sum(used.values())


def _family(pid: int) -> list[int]:
    """A process, and those that it started and that have not ended."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(one) for t in threads for one in (t / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(child))]


@contextmanager
def spent(other: int) -> Iterator[Callable[[], float]]:
    """Seconds that this process and another one, which goes on, used meanwhile."""
    before = _own_s() + running_s(other)
    ended: list[float] = []
    yield lambda: ended[0]
    ended.append(_own_s() + running_s(other) - before)


def running_s(pid: int) -> float:
    """Of a process that has not ended yet; 0: it has."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _own_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
