"""A partition with an empty ISR, so that no replica may become leader (KAFKA-708)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace.state.partitions import Partition, State


class EmptyIsr(Diagnosis):
    """The controller removed the last member because unclean elections were enabled."""

    needs = ("state-change",)
    cure = (
        "allow an unclean election for this topic once, with the replica that has most records;"
        " fixed in 0.8.1: the last member stays in the ISR"
    )

    def prepare(self) -> None:
        self.state.partitions.listen(self._written)

    def _written(self, partition: Partition, state: State) -> None:
        if state.isr:
            self.end(partition.name, written(state), f"broker {state.leader} was elected")
        else:
            seen = f"{partition.name} v{state.version} has an empty ISR: no replica may lead"
            self.begin(partition.name, written(state), seen, partition.name)
