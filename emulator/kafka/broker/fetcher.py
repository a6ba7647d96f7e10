"""All fetcher threads of a broker: one per (source broker, fetcher id).

Owns the assignment of partitions to threads, and the failed partitions. Knows no requests and no
roles. Source: server/AbstractFetcherManager.scala, ReplicaFetcherManager.scala@2.6.3; spec §5.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.fetch_state import InitialFetchState, fetcher_hash, fetcher_id
from emulator.kafka.broker.fetcher_thread import HostedPartition, ReplicaFetcherThread
from emulator.kafka.broker.out_of_range import OutOfRange
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.protocol.messages import LiveBroker
from emulator.kafka.protocol.transport import Network
from emulator.kernel.sync import Monitor
from emulator.trace.values import TopicPartition
from zk.scala.library import LIBRARIES


class ReplicaFetcherManager:
    """All fetcher threads of a broker."""

    def __init__(
        self,
        context: BrokerContext,
        network: Network,
        hosted: HostedPartition,
        quota: ReplicationQuotaManager,
        out_of_range: OutOfRange,
    ) -> None:
        self._context, self._network, self._hosted, self._quota = context, network, hosted, quota
        self._out_of_range = out_of_range
        self._lock = Monitor(context.kernel, "fetcherManager")
        self.threads: dict[tuple[int, int], ReplicaFetcherThread] = {}
        self.failed_partitions: dict[TopicPartition, None] = {}

    async def add_fetcher_for_partitions(
        self, states: dict[TopicPartition, InitialFetchState]
    ) -> None:
        """Group by source broker and fetcher id; start missing threads."""
        # Lock order: the manager's lock, then a thread's partitionMapLock; never the reverse.
        async with self._lock:
            groups: dict[tuple[LiveBroker, int], dict[TopicPartition, InitialFetchState]] = {}
            for partition, state in states.items():
                number = fetcher_id(partition, self._context.config.num_replica_fetchers)
                groups.setdefault((state.leader, number), {})[partition] = state
                # A LeaderAndIsr lets a failed partition start again.
                self.failed_partitions.pop(partition, None)
            profile = self._context.profile
            # The order of Scala's groupBy depends on the leaders' ports (spec §6.15).
            order = LIBRARIES[profile.scala].grouped_order(
                groups, lambda group: fetcher_hash(*group, profile)
            )
            for leader, number in order:
                key = leader.broker, number
                thread = self.threads.get(key)
                if thread is not None and thread.leader != leader:
                    # The broker has restarted with another address.
                    await thread.shutdown()
                    thread = None
                if thread is None:
                    thread = self.threads[key] = ReplicaFetcherThread(
                        self._context,
                        self._network,
                        self._hosted,
                        self._quota,
                        self._out_of_range,
                        leader,
                        number,
                        self.failed_partitions,
                    )
                    # As in Kafka, the thread starts before it has partitions: see its `_run`.
                    await self._context.kernel.checkpoint("fetcher_add")
                await thread.add_partitions(groups[leader, number])

    async def remove_fetcher_for_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        async with self._lock:
            removed = list(partitions)
            # All threads: the thread of a partition depends on its former leader, which the caller
            # may not know. A thread that processes a response makes this wait.
            for thread in self.threads.values():
                await thread.remove_partitions(removed)
            for partition in removed:
                self.failed_partitions.pop(partition, None)

    async def shutdown_idle_fetcher_threads(self) -> None:
        """Shut down threads without partitions, one after the other. A thread whose leader does not
        respond blocks the caller, which holds replicaStateChangeLock, for about 1 s (spec §4.3)."""
        async with self._lock:
            for key in [k for k, thread in self.threads.items() if not thread.partitions]:
                await self.threads.pop(key).shutdown()

    async def shutdown(self) -> None:
        """Shut down all threads."""
        async with self._lock:
            for thread in self.threads.values():
                await thread.shutdown()
            self.threads.clear()
