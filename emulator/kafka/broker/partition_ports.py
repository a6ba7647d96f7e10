"""What a partition needs of its broker, and what its parts need of it.

Protocols alone: a partition imports no ReplicaManager, and its parts (`leader_isr`,
`idle_fetches`) import no partition. They must not know a partition's rules.
"""

from __future__ import annotations

from typing import Protocol

from emulator.kafka.broker.isr_state import IsrState
from emulator.kafka.broker.replica import Replica
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kernel.sync import RwLock, WriteSection
from emulator.trace.values import TopicPartition


class DelayedOperations(Protocol):
    """Requests parked on this partition (DelayedOperations)."""

    async def check_and_complete_fetch(self, partition: TopicPartition) -> None: ...

    async def check_and_complete_all(self, partition: TopicPartition) -> None: ...

    def about_to_change(self, partition: TopicPartition) -> None:
        """A parked fetch that found nothing here has to look again when it is next tried."""
        ...


class LeaderPartition(Protocol):
    """A partition as its leader's parts see it."""

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
