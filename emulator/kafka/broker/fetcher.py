"""All fetcher threads of a broker: one per (source broker, fetcher id).

Owns which partition is in which thread, and which have failed. Knows no request and no role.
Source: server/AbstractFetcherManager.scala, ReplicaFetcherManager.scala@2.6.3; spec §5.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.fetch_state import InitialFetchState, fetcher_id
from emulator.kafka.broker.fetcher_thread import HostedPartition, ReplicaFetcherThread
from emulator.kafka.broker.out_of_range import OutOfRange
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.protocol.transport import Network
from emulator.kernel.sync import Monitor
from emulator.trace.values import TopicPartition


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
        """Group by source broker and fetcher id; start the threads that are missing."""
        # The manager's lock, then a thread's partitionMapLock: never the other way round.
        async with self._lock:
            groups: dict[tuple[int, int], dict[TopicPartition, InitialFetchState]] = {}
            for partition, state in states.items():
                number = fetcher_id(partition, self._context.config.num_replica_fetchers)
                groups.setdefault((state.leader.broker, number), {})[partition] = state
                # A LeaderAndIsr gives a failed partition another chance.
                self.failed_partitions.pop(partition, None)
            for key, group in groups.items():
                leader = next(iter(group.values())).leader
                thread = self.threads.get(key)
                if thread is not None and thread.leader != leader:
                    # The broker is back under another address.
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
                    # The thread starts before it has partitions, as in Kafka: see its `_run`.
                    await self._context.kernel.checkpoint("fetcher_add")
                await thread.add_partitions(group)

    async def remove_fetcher_for_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        async with self._lock:
            removed = list(partitions)
            # Every thread is asked: which one has a partition depends on a leader that the caller
            # may not know any more. A thread that handles a response makes us wait here.
            for thread in self.threads.values():
                await thread.remove_partitions(removed)
            for partition in removed:
                self.failed_partitions.pop(partition, None)

    async def shutdown_idle_fetcher_threads(self) -> None:
        """Threads without partitions end. Each is waited for: one whose leader does not answer
        keeps the caller, and with it replicaStateChangeLock, for about 1 s (spec §4.3)."""
        async with self._lock:
            for key in [k for k, thread in self.threads.items() if not thread.partitions]:
                await self.threads.pop(key).shutdown()

    async def shutdown(self) -> None:
        """All threads end."""
        async with self._lock:
            for thread in self.threads.values():
                await thread.shutdown()
            self.threads.clear()
