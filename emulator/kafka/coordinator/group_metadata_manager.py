"""The groups that one broker coordinates, and their records in `__consumer_offsets`.

Owns which partitions of that topic this broker has loaded, how a group's partition is found, and
how changes are written there before they take effect, and when offsets and empty groups expire.
`group_records` has the format of records, `group_coordinator` the effects. Source:
coordinator/group/GroupMetadataManager.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.replica_manager import ReplicaManager
from emulator.kafka.coordinator.group_metadata import GroupMetadata, GroupState
from emulator.kafka.coordinator.group_records import (
    GroupKey,
    OffsetKey,
    StoredGroup,
    UnknownRecord,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_group,
    read_key,
    read_offset,
)
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.record_batch import Record, UnreadableBatch, batch_of, records_of
from emulator.kafka.model.topic_names import GROUP_METADATA_TOPIC
from emulator.kafka.profiles.guards.groups import OFFSETS_EXPIRE_WITH_GROUP
from emulator.kafka.protocol.groups import CommittedOffset
from emulator.kafka.protocol.messages import ProducedPartition, ProducePartition, ProduceRequest
from emulator.kernel.scheduler import Kernel
from emulator.kernel.sync import Queue
from emulator.trace.values import TopicPartition
from zk.scala.java_hash import java_hash, signed

Records = list[tuple[bytes | None, bytes | None]]
OnGroup = Callable[[GroupMetadata], Awaitable[None]]

_NOT_AVAILABLE = (
    Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.NOT_ENOUGH_REPLICAS,
    Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
_NOT_COORDINATOR = (Errors.NOT_LEADER_OR_FOLLOWER, Errors.KAFKA_STORAGE_ERROR)


class GroupMetadataManager:
    """All groups of one broker."""

    def __init__(
        self,
        context: BrokerContext,
        replica_manager: ReplicaManager,
        partition_count: int,
        wall_ms: Callable[[], int],
    ) -> None:
        """`partition_count` is that of `__consumer_offsets`; `wall_ms` is the clock for timestamps
        in its records."""
        self._context, self._replicas, self._wall_ms = context, replica_manager, wall_ms
        self.partition_count = partition_count
        self.groups: dict[str, GroupMetadata] = {}
        # Partitions that this broker leads and has loaded, and those that it is loading. Dicts,
        # because sets do not keep their order.
        self._owned: dict[int, None] = {}
        self._loading: dict[int, None] = {}
        self._jobs: Queue[Callable[[], Awaitable[None]]] | None = None
        self._started_us = context.kernel.now
        self._retention_ms = context.config.offsets_retention_minutes * 60_000
        self._expires_with_group = OFFSETS_EXPIRE_WITH_GROUP in context.guards

    # -- which groups ------------------------------------------------------------------------------

    def partition_for(self, group: str) -> int:
        """Utils.abs(groupId.hashCode) % groupMetadataTopicPartitionCount."""
        number = signed(java_hash(group))
        # The absolute value of Java's smallest integer is negative: Utils.abs returns 0.
        return (0 if number == -(2**31) else abs(number)) % self.partition_count

    def is_group_local(self, group: str) -> bool:
        return self.partition_for(group) in self._owned

    def is_group_loading(self, group: str) -> bool:
        return self.partition_for(group) in self._loading

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def add_group(self, group: str) -> GroupMetadata:
        new = GroupMetadata(self._context.kernel, group, self._wall_ms)
        return self.groups.setdefault(group, new)

    # -- writing -----------------------------------------------------------------------------------

    async def store_group(
        self, group: GroupMetadata, assignments: dict[str, bytes], done: Callable[[Errors], None]
    ) -> None:
        """Write a generation; `done` is called when all in-sync replicas have it. The caller holds
        the group's lock.

        `done` runs in the thread that completes the write, which may not hold the lock: it must not
        block.
        """
        stored = group.stored(assignments)
        version = self._context.profile.group_record_versions[1]

        def answered(result: ProducedPartition) -> None:
            error = result.error
            if error in _NOT_AVAILABLE:
                error = Errors.COORDINATOR_NOT_AVAILABLE
            elif error is Errors.REQUEST_TIMED_OUT:
                error = Errors.REBALANCE_IN_PROGRESS
            elif error in _NOT_COORDINATOR:
                error = Errors.NOT_COORDINATOR
            done(error)

        # One record for the whole group: the next generation's record replaces it.
        record = (group_key(group.group), group_value(stored, version))
        await self._append(group.group, [record], answered)

    async def store_offsets(
        self,
        group: GroupMetadata,
        offsets: Iterable[tuple[TopicPartition, CommittedOffset]],
        done: Callable[[tuple[tuple[TopicPartition, Errors], ...]], None],
    ) -> None:
        """Write committed offsets; they take effect when all in-sync replicas have them. The caller
        holds the group's lock; `done` as in `store_group`."""
        most = self._context.config.offset_metadata_max_bytes
        offsets, now_ms = tuple(offsets), self._wall_ms()
        # Up to 2.0 a commit fixes when it expires (KafkaApis.scala@1.1.1
        # handleOffsetCommitRequest).
        expires_ms = -1 if self._expires_with_group else now_ms + self._retention_ms
        accepted = [
            (p, o._replace(commit_timestamp_ms=now_ms, expire_timestamp_ms=expires_ms))
            for p, o in offsets
            # An entry whose metadata is too long is rejected on its own.
            if len(o.metadata) <= most
        ]

        def answered(result: ProducedPartition) -> None:
            error = result.error
            if error is Errors.NONE:
                for number, (partition, committed) in enumerate(accepted):
                    # Unloaded meanwhile: the partition's new leader reads the commit from its log.
                    if not group.is_in(GroupState.DEAD):
                        group.on_offset_committed(partition, committed, result.base_offset + number)
            else:
                for partition, committed in accepted:
                    group.end_pending_offset_commit(partition, committed)
            if error in _NOT_AVAILABLE:
                error = Errors.COORDINATOR_NOT_AVAILABLE
            elif error in _NOT_COORDINATOR:
                error = Errors.NOT_COORDINATOR
            stored = dict(accepted)
            done(
                tuple(
                    (p, error if p in stored else Errors.OFFSET_METADATA_TOO_LARGE)
                    for p, _ in offsets
                )
            )

        version = self._context.profile.group_record_versions[0]
        records: Records = [
            (offset_key(group.group, p), offset_value(o, version)) for p, o in accepted
        ]
        if records:
            group.prepare_offset_commit(accepted)
            await self._append(group.group, records, answered)
        else:
            answered(ProducedPartition(TopicPartition(GROUP_METADATA_TOPIC, 0), Errors.NONE, -1))

    async def _append(
        self,
        group: str,
        records: Records,
        done: Callable[[ProducedPartition], None] = lambda _: None,
        acks: int = -1,
    ) -> None:
        data = batch_of(records, self._wall_ms())
        partition = TopicPartition(GROUP_METADATA_TOPIC, self.partition_for(group))
        produced = ProducePartition(partition, len(records), len(data), data)
        await self._replicas.append_records(
            ProduceRequest(acks, self._context.config.offsets_commit_timeout_ms, (produced,)),
            lambda results: done(results[0]),
            internal_topics_allowed=True,
        )

    # -- loading and unloading ---------------------------------------------------------------------

    def schedule_load(self, number: int, on_loaded: OnGroup) -> None:
        """This broker now leads partition `number`. Until it is loaded its groups respond with
        COORDINATOR_LOAD_IN_PROGRESS."""
        if number in self._owned:
            return
        self._loading[number] = None
        self._schedule(lambda: self._load(number, on_loaded))

    def schedule_unload(self, number: int, on_unloaded: OnGroup) -> None:
        """Another broker now leads the partition."""
        self._schedule(lambda: self._unload(number, on_unloaded))

    def _schedule(self, job: Callable[[], Awaitable[None]]) -> None:
        """One thread for loads and unloads, so that they happen in the order of the leader
        changes."""
        if self._jobs is None:
            self._jobs = Queue(self._context.kernel)
            self._context.spawn("group-metadata-manager-0", self._run(self._jobs))
            # Kafka's thread removes expired offsets from the broker's start on. Before this job
            # there are none: later runs keep that phase.
            period_ms = self._context.config.offsets_retention_check_interval_ms
            elapsed_ms = (self._context.kernel.now - self._started_us) // 1000
            name = "delete-expired-group-metadata"
            self._context.schedule(name, self._clean_up, period_ms, -elapsed_ms % period_ms)
        self._jobs.put(job)

    async def _clean_up(self) -> None:
        assert self._jobs is not None
        self._jobs.put(self.remove_expired_offsets)

    @staticmethod
    async def _run(jobs: Queue[Callable[[], Awaitable[None]]]) -> None:
        while True:
            job = await jobs.take()
            await job()

    async def _load(self, number: int, on_loaded: OnGroup) -> None:
        """Read the partition from start to end (doLoadGroupsAndOffsets)."""
        partition = TopicPartition(GROUP_METADATA_TOPIC, number)
        hosted = self._replicas.partitions.get(partition)
        # The leadership may have moved again before this job started.
        log = hosted.leader_log if hosted is not None else None
        if log is None:
            self._loading.pop(number, None)
            return
        contents = _Contents()
        for batch in log.batches:
            try:
                for record in records_of(batch.data, batch.base_offset) if batch.data else ():
                    contents.take(record)
            except (UnknownRecord, UnreadableBatch) as error:
                # The rest of this batch is skipped; groups that could be read are available.
                self._context.failed(f"loading {partition}", error)
        # Owned before the groups' timers start: these may act at once.
        self._owned[number] = None
        self._loading.pop(number, None)
        default_ms = -1 if self._expires_with_group else self._retention_ms
        for group in contents.loaded(self._context.kernel, self._wall_ms, default_ms):
            # A group that is already loaded stays unchanged.
            if self.groups.setdefault(group.group, group) is group:
                await on_loaded(group)

    async def _unload(self, number: int, on_unloaded: OnGroup) -> None:
        self._owned.pop(number, None)
        self._loading.pop(number, None)
        for name, group in list(self.groups.items()):
            if self.partition_for(name) == number:
                await on_unloaded(group)
                self.groups.pop(name, None)

    # -- expiry ------------------------------------------------------------------------------------

    async def remove_expired_offsets(self) -> None:
        """Remove expired offsets of all groups (cleanupGroupMetadata without parameters)."""
        now_ms, retention_ms = self._wall_ms(), self._retention_ms
        await self.cleanup_group_metadata(
            list(self.groups.values()),
            lambda group: group.remove_expired_offsets(
                now_ms, retention_ms, with_group=self._expires_with_group
            ),
        )

    async def cleanup_group_metadata(
        self,
        groups: Iterable[GroupMetadata],
        remove_offsets: Callable[[GroupMetadata], list[TopicPartition]],
    ) -> None:
        """Remove offsets, and groups that have neither members nor offsets after that; write
        tombstones for both (cleanupGroupMetadata).

        `remove_offsets` is called under the group's lock, and returns the partitions.
        """
        for group in groups:
            async with group.lock:
                removed = remove_offsets(group)
                if group.is_in(GroupState.EMPTY) and not group.has_offsets:
                    group.transition_to(GroupState.DEAD)
                is_dead, generation = group.is_in(GroupState.DEAD), group.generation
            if TopicPartition(GROUP_METADATA_TOPIC, self.partition_for(group.group)) not in (
                self._replicas.partitions
            ):
                continue  # another broker has it now
            tombstones: Records = [(offset_key(group.group, p), None) for p in removed]
            # Unloaded meanwhile, or loaded again: that group is not this one.
            if is_dead and self.groups.get(group.group) is group:
                del self.groups[group.group]
                # A group that only stores offsets has no record of its own.
                if generation > 0:
                    tombstones.append((group_key(group.group), None))
            if tombstones:
                # Not awaited by the followers: a new leader finds the same offsets expired.
                await self._append(group.group, tombstones, acks=0)


class _Contents:
    """The result of a partition's records: later ones replace earlier ones."""

    def __init__(self) -> None:
        self._groups: dict[str, StoredGroup] = {}
        self._offsets: dict[str, dict[TopicPartition, tuple[CommittedOffset, int]]] = {}

    def take(self, record: Record) -> None:
        """Raises UnknownRecord; an unreadable value leaves the key's previous value."""
        key = None if record.key is None else read_key(record.key)
        match key:
            case OffsetKey(group, partition):
                offsets = self._offsets.setdefault(group, {})
                if record.value is None:
                    offsets.pop(partition, None)
                else:
                    offsets[partition] = read_offset(record.value), record.offset
            case GroupKey(group):
                if record.value is None:
                    self._groups.pop(group, None)
                else:
                    self._groups[group] = read_group(record.value)

    def loaded(
        self, kernel: Kernel, wall_ms: Callable[[], int], retention_ms: int
    ) -> Iterator[GroupMetadata]:
        """The groups, including those that only store offsets. `retention_ms`: of offsets whose
        record does not say when they expire (-1: these have no such time)."""
        with_offsets = (name for name, offsets in self._offsets.items() if offsets)
        for name in dict.fromkeys([*self._groups, *with_offsets]):
            stored = self._groups.get(name, StoredGroup("", 0, None, None, ()))
            # Offsets without a group record belong to a consumer that assigns its own partitions
            # and only commits.
            group = GroupMetadata.loaded(kernel, name, stored, wall_ms)
            for partition, (committed, base) in self._offsets.get(name, {}).items():
                if committed.expire_timestamp_ms < 0 <= retention_ms:
                    expires_ms = committed.commit_timestamp_ms + retention_ms
                    committed = committed._replace(expire_timestamp_ms=expires_ms)
                group.initialize_offset(partition, committed, base)
            yield group
