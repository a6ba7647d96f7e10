"""What a fetcher thread knows of one partition: from where it fetches, and whether it may.

Plain data and what follows from it; whose turn it is and what is asked is `fetcher`'s. Sources:
server/AbstractFetcherThread.scala@2.6.3 PartitionFetchState, AbstractFetcherManager.scala
InitialFetchState.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from emulator.protocol.messages import LiveBroker


class InitialFetchState(NamedTuple):
    """With what a partition is added to a fetcher: from whom, in which epoch, from the local high
    watermark."""

    leader: LiveBroker
    current_leader_epoch: int
    init_offset: int


@dataclass(slots=True)
class PartitionFetchState:
    """One partition in a fetcher thread; `delayed_until_us` 0: not delayed."""

    fetch_offset: int
    lag: int | None
    current_leader_epoch: int
    delayed_until_us: int
    truncating: bool

    def is_delayed(self, now_us: int) -> bool:
        return self.delayed_until_us > now_us

    def is_ready_for_fetch(self, now_us: int) -> bool:
        return not self.truncating and self.delayed_until_us <= now_us

    @property
    def is_replica_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0
