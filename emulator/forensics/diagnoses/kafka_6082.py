"""A controller that another has replaced, and that goes on to write.

Owns this pattern: a state whose deciding controller was elected before the newest one, and that was
written well after that one's election. It looks at elections and states, at nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from emulator.forensics.diagnoses.base import Diagnosed, Diagnosis, hear
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.values import TopicPartition

SURE_AFTER_US = 100_000
"""Clocks of logs agree within less; a write of the moment of the election may be of before it."""


class _Case(msgspec.Struct):
    """What one controller wrote after it had been replaced."""

    broker: int
    epoch: int
    newest: e.ControllerElected
    writes: list[State]
    partitions: dict[TopicPartition, None]


class ReplacedController(Diagnosis):
    """`/controller` was deleted, or a new session let an old write through: up to 2.0 nothing
    in ZooKeeper says who may write, and the new controller never hears of it."""

    cure = (
        "elect another controller (delete /controller): it reads all states again; upgrade"
        " to 2.1, where every write of a controller carries its epoch"
    )

    def cases(self, events: Sequence[AnyEvent]) -> Iterator[Diagnosed]:
        look = _Look()
        hear(events, look.partitions, look)
        for case in look.cases.values():
            first, last = case.writes[0], case.writes[-1]
            count = len(case.writes)
            yield Diagnosed(
                name=self.name,
                broker=case.broker,
                partitions=tuple(sorted(case.partitions)),
                from_us=case.newest.t,
                to_us=last.from_us,
                seen=(
                    f"broker {case.broker}, controller of epoch {case.epoch}, wrote {count}"
                    f" state{'s'[: count > 1]} up to {(last.from_us - case.newest.t) / 1e6:.1f} s"
                    f" after broker {case.newest.broker} was elected with epoch"
                    f" {case.newest.controller_epoch}"
                ),
                ended="nothing shows that the new controller learned of it",
                cure=self.cure,
                facts=(case.newest.seq, first.seq, last.seq),
            )


class _Look:
    def __init__(self) -> None:
        self.partitions = Partitions()
        self.partitions.listen(self._written)
        self.cases: dict[int, _Case] = {}
        self._newest: e.ControllerElected | None = None

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        if self._newest is None or event.controller_epoch > self._newest.controller_epoch:
            self._newest = event

    def _written(self, partition: Partition, state: State) -> None:
        newest = self._newest
        if newest is None or not 0 <= state.controller_epoch < newest.controller_epoch:
            return
        if state.by in (state.leader, newest.broker):
            return  # a leader keeps the epoch of the controller that elected it
        if state.from_us - newest.t < SURE_AFTER_US:
            return
        case = self.cases.setdefault(
            state.controller_epoch,
            _Case(state.by, state.controller_epoch, newest, [], {}),
        )
        case.writes.append(state)
        case.partitions[partition.name] = None
