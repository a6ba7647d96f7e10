"""A controller that another has replaced, and that goes on to write (KAFKA-6082).

Owns this pattern: a state whose deciding controller was elected before the newest one, and that was
written well after that one's election. It looks at elections and states, at nothing else.
"""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State

SURE_AFTER_US = 100_000
"""Clocks of logs agree within less; a write of the moment of the election may be of before it."""


class ReplacedController(Diagnosis):
    """`/controller` was deleted, or a new session let an old write through: up to 2.0 nothing
    in ZooKeeper says who may write, and the new controller never hears of it."""

    needs = ("controller", "zookeeper")
    cure = (
        "elect another controller (delete /controller): it reads all states again; upgrade"
        " to 2.1, where every write of a controller carries its epoch"
    )

    def prepare(self) -> None:
        self.state.partitions.listen(self._written)
        self._newest: e.ControllerElected | None = None
        self._writes: dict[int, list[State]] = {}

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        if self._newest is None or event.controller_epoch > self._newest.controller_epoch:
            self._newest = event
            for epoch in list(self._writes):
                self._end(epoch)

    def _written(self, partition: Partition, state: State) -> None:
        newest, epoch = self._newest, state.controller_epoch
        if newest is None or not 0 <= epoch < newest.controller_epoch:
            return
        if state.by in (state.leader, newest.broker):
            return  # a leader keeps the epoch of the controller that elected it
        if state.from_us - newest.t < SURE_AFTER_US:
            return
        writes = self._writes.setdefault(epoch, [])
        writes.append(state)
        case = self.begin(epoch, newest, "", broker=state.by)
        case.partitions = tuple(sorted({one.partition for one in writes}))
        case.seen = (
            f"broker {case.broker}, controller of epoch {epoch}, wrote {len(writes)}"
            f" state{'s'[: len(writes) > 1]} up to {(state.from_us - newest.t) / 1e6:.1f} s"
            f" after broker {newest.broker} was elected with epoch {newest.controller_epoch}"
        )
        case.facts[1:] = [writes[0].seq]

    def _end(self, epoch: int) -> None:
        last = written(self._writes.pop(epoch)[-1])
        self.end(epoch, last, "it was its last write; no other controller learned of it")

    def finish(self, now_us: int) -> None:
        """Nothing that it writes later is in the trace."""
        for epoch in list(self._writes):
            self._end(epoch)
