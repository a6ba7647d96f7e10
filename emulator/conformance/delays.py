"""The delays of a recording; each name says where it starts and ends.

Owns which delays are compared: those since the preceding action (or a broker's registration), and
those since the cause. A partition's creation is left out: the first requests of a cold JVM take up
to a second. This module must not know which delays are allowed.
"""

from bisect import bisect_right, insort
from typing import TypeAlias

from emulator.conformance.recording import Fact, Recording, Transaction, partition_of
from emulator.conformance.znodes import (
    BROKER_IDS,
    NOTIFICATIONS,
    decode_notification,
    decode_state,
    partition_of_state,
)

STALL = ": stall "
"""Between the producer with its partition, and the number of the stall (from 1)."""

Delays: TypeAlias = dict[str, int]
"""Milliseconds by name."""


def delays_of(recording: Recording, stalls: dict[str, list[int]]) -> Delays:
    watch = StopWatch()
    watch.add(recording)
    for lane, gaps in stalls.items():
        watch.out |= {f"{lane}{STALL}{i}": ms for i, ms in enumerate(gaps, 1)}
    return watch.out


class StopWatch:
    """Goes through a recording once and measures the time from each fact's cause."""

    def __init__(self) -> None:
        self.out: Delays = {}
        self.ended_ms: dict[str, int] = {}
        """When each delay ended."""
        self._actions: list[int] = []
        self._decided: dict[tuple[str, int, tuple[int, ...]], int] = {}
        self._written: dict[tuple[str, int], int] = {}
        self._last_written: dict[str, int] = {}
        self._controller: int | None = None
        self._controller_gone: int | None = None
        self._elections = 0

    def add(self, piece: Recording) -> None:
        """Add the next part, which must be later than all previous ones."""
        for op in piece.transactions:
            if op.op == "create" and op.path.startswith(BROKER_IDS):
                insort(self._actions, op.t)
        for fact in piece.of("stimulus"):
            insort(self._actions, fact["t"])

        steps: list[tuple[int, bool, Fact | Transaction]] = [
            *((fact["t"], False, fact) for fact in piece.of("shrink", "expand", "update_metadata")),
            *((op.t, True, op) for op in piece.transactions),
        ]
        # At equal times, brokers' facts come before ZooKeeper's: decisions precede writes.
        for t, _, step in sorted(steps, key=lambda step: step[:2]):
            if isinstance(step, Transaction):
                self._applied(step)
                continue
            partition, broker = partition_of(step), step["broker"]
            if step["kind"] != "update_metadata":
                self._decided[partition, broker, tuple(step["to_isr"])] = t
                continue
            version = step.get("zk_version")
            if (written := self._written.get((partition, version or 0))) is not None:
                what = f"{partition} v{version}: state write to metadata of broker {broker}"
                if what not in self.out:
                    self._measured(what, written, t)

    def _applied(self, op: Transaction) -> None:
        partition = partition_of_state(op.path)
        if op.op == "closeSession" and op.broker == self._controller:
            self._controller_gone = op.t
        elif partition and op.op in ("create", "setData") and op.t >= 0:
            self._state_written(partition, op)
        elif op.path == "/controller" and op.op == "create":
            if self._controller_gone is not None:
                self._elections += 1
                what = f"election {self._elections}: /controller gone to new controller"
                self._measured(what, self._controller_gone, op.t)
            self._controller, self._controller_gone = op.broker, None
        elif op.path.startswith(NOTIFICATIONS) and op.op == "create":
            named = decode_notification(op.data).partitions
            last = max((self._last_written.get(str(p), op.t) for p in named), default=op.t)
            what = f"{op.path.removeprefix(NOTIFICATIONS)}: last state write to notification"
            self._measured(what, last, op.t)

    def _state_written(self, partition: str, op: Transaction) -> None:
        if not (version := op.version_after):
            return  # the partition's creation
        self._written[partition, version] = self._last_written[partition] = op.t
        what, before = f"{partition} v{version}", bisect_right(self._actions, op.t)
        action = self._actions[before - 1] if before else 0
        self._measured(f"{what}: stimulus to state write", action, op.t)
        if op.broker is None:
            return
        decided = self._decided.get((partition, op.broker, decode_state(op.data).isr))
        if decided is not None:
            self._measured(f"{what}: decision to state write", decided, op.t)

    def _measured(self, what: str, since_ms: int, until_ms: int) -> None:
        self.out[what], self.ended_ms[what] = until_ms - since_ms, until_ms
