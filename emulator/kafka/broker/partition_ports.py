"""What a partition needs from its broker, and what its parts need from it.

Protocols only: a partition does not import ReplicaManager, and its parts (`leader_isr`,
`idle_fetches`) do not import the partition.
"""

from __future__ import annotations

from typing import Protocol

from emulator.kafka.broker.isr_state import IsrState
from emulator.kafka.broker.replica import Replica
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kernel.sync import RwLock, WriteSection
from emulator.trace.values import TopicPartition


class DelayedOperations(Protocol):
    """Requests that wait for this partition (DelayedOperations)."""

    async def check_and_complete_fetch(self, partition: TopicPartition) -> None: ...

    async def check_and_complete_all(self, partition: TopicPartition) -> None: ...

    async def check_and_complete_delete_records(self, partition: TopicPartition) -> None: ...

    def about_to_change(self, partition: TopicPartition) -> None:
        """A delayed fetch that found nothing here has to check again at its next attempt."""
        ...


class LeaderPartition(Protocol):
    """A partition as seen by the leader's parts."""

    partition: TopicPartition
    lock: RwLock
    remotes: dict[int, Replica]
    zk_version: int
    leader_epoch: int
    leader_epoch_start_offset: int | None
    leader_replica_id: int | None
    controller_epoch: int
    isr: tuple[int, ...]

    @property
    def isr_state(self) -> IsrState: ...

    @isr_state.setter
    def isr_state(self, state: IsrState) -> None: ...

    @property
    def leader_log(self) -> OffsetLog | None: ...

    def writing(self) -> WriteSection: ...

    def wake(self) -> None: ...

    def maybe_increment_leader_hw(self, now_ms: int) -> bool: ...

    async def complete_all_delayed(self) -> None: ...
