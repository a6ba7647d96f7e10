"""ElectLeaders at the broker: the response waits until its metadata cache shows the elected
leaders.

The election itself is not done here. Sources: server/ReplicaManager.scala@2.6.3 electLeaders,
server/DelayedElectLeader.scala@2.6.3; spec §4.5, §6.12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.purgatory import DelayedOperation, Purgatory
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import ElectionResults
from emulator.trace.values import TopicPartition

OnResults = Callable[[dict[TopicPartition, Errors]], None]


class DelayedElectLeader(DelayedOperation):
    """Waits until every elected leader is in the metadata cache."""

    def __init__(
        self,
        timeout_ms: int,
        results: ElectionResults,
        metadata_cache: MetadataCache,
        respond: OnResults,
    ) -> None:
        super().__init__(timeout_ms)
        self._results, self._metadata_cache, self._respond = results, metadata_cache, respond

    def _unseen(self) -> list[TopicPartition]:
        """Partitions whose elected leader is not, or no longer, in the cache."""
        unseen = []
        for partition, leader in self._results.leaders.items():
            state = self._metadata_cache.partition(partition)
            if state is None or state.leader != leader:
                unseen.append(partition)
        return unseen

    async def try_complete(self) -> bool:
        return False if self._unseen() else await self.force_complete()

    async def on_complete(self) -> None:
        # The leaders are elected; only this broker's cache was not updated in time.
        late = dict.fromkeys(self._unseen(), Errors.REQUEST_TIMED_OUT)
        done = dict.fromkeys(self._results.leaders, Errors.NONE)
        self._respond(self._results.errors | done | late)


class ElectLeaders:
    """The waiting ElectLeaders requests."""

    def __init__(self, context: BrokerContext, metadata_cache: MetadataCache) -> None:
        self._context, self._metadata_cache = context, metadata_cache
        self._purgatory = Purgatory(context, "ElectLeader")

    async def answer(self, results: ElectionResults, deadline_ms: int, respond: OnResults) -> None:
        """Respond at once if no leader was elected."""
        if not results.leaders:
            respond(results.errors)
            return
        left_ms = max(0, deadline_ms - self._context.now_ms())
        parked = DelayedElectLeader(left_ms, results, self._metadata_cache, respond)
        await self._purgatory.try_complete_else_watch(parked, list(results.leaders))

    async def metadata_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """The cache was updated: check the waiting requests again."""
        for partition in partitions:
            await self._purgatory.check_and_complete(partition)
