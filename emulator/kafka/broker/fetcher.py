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
from emulator.kafka.protocol.transport import Network
from emulator.kernel.sync import Monitor
from emulator.trace.values import TopicPartition
from zk.scala.library import LIBRARIES

Group = dict[TopicPartition, InitialFetchState]
Groups = dict[tuple[int, int], Group]
"""By (source broker, fetcher id)."""


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
            groups: Groups = {}
            for partition, state in states.items():
                number = fetcher_id(partition, self._context.config.num_replica_fetchers)
                groups.setdefault((state.leader.broker, number), {})[partition] = state
                # A LeaderAndIsr lets a failed partition start again.
                self.failed_partitions.pop(partition, None)
            for key, group in self._in_order(groups):
                leader = next(iter(group.values())).leader
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
                        key[1],
                        self.failed_partitions,
                    )
                    # As in Kafka, the thread starts before it has partitions: see its `_run`.
                    await self._context.kernel.checkpoint("fetcher_add")
                await thread.add_partitions(group)

    def _in_order(self, groups: Groups) -> list[tuple[tuple[int, int], Group]]:
        """The groups in the order of Scala's groupBy, whose keys contain the leaders' addresses: it
        depends on their ports, and is the same for all brokers."""
        profile = self._context.profile

        def hash_of(key: tuple[int, int]) -> int:
            leader = next(iter(groups[key].values())).leader
            return fetcher_hash(leader, key[1], profile)

        order = LIBRARIES[profile.scala].grouped_order(groups, hash_of)
        return [(key, groups[key]) for key in order]

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
