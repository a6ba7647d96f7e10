"""A replaced controller that keeps writing (KAFKA-6082).

The pattern: a state that was decided by a controller elected before the newest one, and written
well after the newest one's election. It uses only elections and states.
"""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State

SURE_AFTER_US = 100_000
"""The remaining error of the clocks of logs is smaller; a write at the moment of the election may
precede it."""


class ReplacedController(Diagnosis):
    """`/controller` was deleted, or a new session let an old write pass. Up to 2.0 ZooKeeper does
    not check who writes, and the new controller does not learn of the write."""

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
        """The trace has none of its later writes."""
        for epoch in list(self._writes):
            self._end(epoch)
