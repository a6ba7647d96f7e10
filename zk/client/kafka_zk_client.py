"""KafkaZkClient: the ZooKeeper requests of brokers and controllers, request by request as in Kafka.

Owns the retry after a connection loss (never across sessions), the fencing of controller writes by
the version of `/controller_epoch`, the checker of conditional updates, and the races of
registration and election. It does not know ISR rules or state machines. Result codes are outcomes;
SessionExpired, ControllerMoved and ZooKeeperError end a call. A znode that cannot be decoded is
reported and treated as absent. Source: zk/KafkaZkClient.scala@2.6.3,
utils/ReplicationUtils.scala@2.6.3; spec §2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from zk import paths
from zk.client import codec, codec_admin, legacy_requests
from zk.client.client import ZNodeChangeHandler, ZooKeeperClient
from zk.client.client_version import LATEST, ClientVersion
from zk.client.codec import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from zk.client.codec_admin import BrokerInfo, ProducerIdBlock
from zk.client.config_requests import ConfigRequests
from zk.client.zk_requests import MATCH_ANY_VERSION, NO_FENCING, expect_ok
from zk.errors import Code, ControllerMoved, ZooKeeperError
from zk.ops import (
    Create,
    CreateMode,
    Delete,
    GetChildren,
    GetData,
    Multi,
    Reply,
    SetData,
    Stat,
)
from zk.scala.java_hash import java_hash
from zk.scala.murmur import topic_and_partition_hash

INITIAL_CONTROLLER_EPOCH = 0
NO_BROKER_EPOCH = -1


class Updated(NamedTuple):
    """A conditional update succeeded; the znode's new version."""

    zk_version: int


class Rejected(NamedTuple):
    """A conditional update failed: the version differs, or the znode does not exist."""

    reason: str


class UpdateLeaderAndIsrResult(NamedTuple):
    """For each partition: finished with the new state or an error, or to be retried
    (BADVERSION)."""

    finished: dict[TopicPartition, LeaderAndIsr | ZooKeeperError]
    to_retry: list[TopicPartition]


class KafkaZkClient(ConfigRequests):
    """One broker's access to Kafka's znodes."""

    def __init__(
        self,
        client: ZooKeeperClient,
        wall_ms: Callable[[], int],
        client_version: ClientVersion = LATEST,
    ) -> None:
        super().__init__(client)
        self._wall_ms, self._client_version = wall_ms, client_version
        self._registered_session = 0
        self._topic_ids: dict[str, str] = {}
        """Of topics that it has read. Ours have none; those that real Kafka gave must stay: it
        would give a topic without an id another one, which brokers with the old one refuse."""

    # -- start-up ----------------------------------------------------------------------------------

    async def create_top_level_paths(self) -> None:
        """makeSurePersistentPathExists for each pre-created path, in order."""
        for path in self._client_version.top_level_paths:
            if self._client_version.looks_before_creating and await self.path_exists(path):
                continue
            await self.make_sure_persistent_path_exists(path)

    async def get_cluster_id(self) -> str | None:
        return await self._read(paths.CLUSTER_ID, codec_admin.decode_cluster_id)

    async def create_or_get_cluster_id(self, proposed: str) -> str:
        try:
            data = codec_admin.encode_cluster_id(proposed)
            await self._create_recursive(paths.CLUSTER_ID, data, fail_if_exists=True)
            return proposed
        except ZooKeeperError as error:
            if error.code is not Code.NODE_EXISTS:
                raise
            return await self.get_cluster_id() or proposed

    async def get_producer_id_block(self) -> tuple[ProducerIdBlock | None, int]:
        """The block that was claimed last, and the znode's version (getDataAndVersion). None: no
        broker has claimed one yet. Raises MalformedZNode: starting over would assign ids twice."""
        path = paths.LATEST_PRODUCER_ID_BLOCK
        reply = await self.one(GetData(path))
        expect_ok(reply, path)
        assert reply.stat is not None
        block = codec_admin.decode_producer_id_block(reply.data) if reply.data else None
        return block, reply.stat.version

    async def claim_producer_id_block(self, block: ProducerIdBlock, expected_version: int) -> bool:
        """Claim the block; False if another broker was faster."""
        data = codec_admin.encode_producer_id_block(block)

        def checker(current: Reply) -> int | None:
            assert current.stat is not None
            return current.stat.version if current.data == data else None

        path = paths.LATEST_PRODUCER_ID_BLOCK
        result = await self.conditional_update_path(path, data, expected_version, checker)
        return isinstance(result, Updated)

    async def register_broker(self, broker: int, info: BrokerInfo) -> int:
        """Create the ephemeral registration; returns the broker epoch (its czxid), or -1 in
        releases without broker epochs."""
        if not self._client_version.checked_registration:
            await legacy_requests.register_broker(self, broker, info, self._client_version)
            return NO_BROKER_EPOCH
        path = paths.broker_id(broker)
        stat = await self._checked_ephemeral_create(path, codec_admin.encode_broker(info))
        self._registered_session = self.client.session_id
        return stat.czxid

    async def _checked_ephemeral_create(self, path: str, data: bytes) -> Stat:
        """CheckedEphemeral.create: one multi; after NODEEXISTS the owner is checked (spec §2.8)."""
        while True:
            create = Create(path, None, CreateMode.EPHEMERAL)
            reply = await self.one(Multi((create, SetData(path, data, 0))))
            if reply.code is Code.OK:
                stat = reply.results[1].stat
                assert stat is not None, "a setData in a multi answers with the Stat"
                return stat
            if reply.code is not Code.NODE_EXISTS:
                raise ZooKeeperError(reply.code, path)
            own = await self._after_node_exists(path)
            if own is not None:
                return own

    async def _after_node_exists(self, path: str) -> Stat | None:
        """The Stat if the existing znode belongs to this broker; None: create again."""
        reply = await self.read_if_present(path)
        if reply is None:
            return None
        assert reply.stat is not None
        owner, session = reply.stat.ephemeral_owner, self.client.session_id
        # Created by an earlier attempt whose response was lost.
        if owner == session:
            return reply.stat
        # The previous session has expired, but its znode still exists (ZOOKEEPER-2985).
        if (
            self._client_version.recreates_registration
            and owner
            and owner == self._registered_session
        ):
            deleted = await self.one(Delete(path, MATCH_ANY_VERSION))
            if deleted.code not in (Code.OK, Code.NO_NODE):
                raise ZooKeeperError(deleted.code, path)
            return None
        raise ZooKeeperError(Code.NODE_EXISTS, path)

    # -- the controller's election -----------------------------------------------------------------

    async def register_and_check_existence(self, handler: ZNodeChangeHandler) -> bool:
        """Register the handler, then send `exists`, which sets its watch."""
        self.client.register_change_handler(handler)
        return await self.path_exists(handler.path)

    async def get_controller_id(self) -> int | None:
        controller = await self._read(paths.CONTROLLER, codec.decode_controller)
        return controller.broker_id if controller else None

    async def get_controller_epoch(self) -> tuple[int, int] | None:
        """(epoch, znode version)."""
        reply = await self.read_if_present(paths.CONTROLLER_EPOCH)
        if reply is None:
            return None
        assert reply.stat is not None
        return codec.decode_controller_epoch(reply.data), reply.stat.version

    async def get_or_create_controller_epoch(self) -> tuple[int, int]:
        """The epoch and its version, which an election raises from."""
        return await self.get_controller_epoch() or await self._first_controller_epoch()

    async def register_controller_and_increment_controller_epoch(
        self, broker: int, epoch: int, version: int
    ) -> tuple[int, int]:
        """Try to win the election with one multi; returns (epoch, version of `/controller_epoch`).
        ControllerMoved if another broker won (spec §2.7). `epoch` and `version` as read before."""
        new_epoch = epoch + 1
        data = codec.encode_controller(codec.ControllerZNode(broker, self._wall_ms()))
        reply = await self.one(
            Multi(
                (
                    Create(paths.CONTROLLER, data, CreateMode.EPHEMERAL),
                    SetData(
                        paths.CONTROLLER_EPOCH, codec.encode_controller_epoch(new_epoch), version
                    ),
                )
            )
        )
        if reply.code in (Code.NODE_EXISTS, Code.BAD_VERSION):
            return await self._check_controller_and_epoch(broker, new_epoch)
        expect_ok(reply, paths.CONTROLLER)
        stat = reply.results[1].stat
        assert stat is not None
        return new_epoch, stat.version

    async def create_controller(self, broker: int) -> None:
        """Up to 2.0 the first step of the election; ControllerMoved if another broker is
        controller."""
        if not await legacy_requests.create_controller(
            self, broker, self._wall_ms(), self._client_version
        ):
            raise ControllerMoved("another broker was elected")

    async def increment_controller_epoch(self) -> tuple[int, int]:
        """Up to 2.0 the second and third step; returns (epoch, version)."""
        return await legacy_requests.increment_controller_epoch(self, self._client_version)

    async def _first_controller_epoch(self) -> tuple[int, int]:
        data = codec.encode_controller_epoch(INITIAL_CONTROLLER_EPOCH)
        reply = await self.one(Create(paths.CONTROLLER_EPOCH, data))
        if reply.code is Code.OK:
            return INITIAL_CONTROLLER_EPOCH, 0
        if reply.code is not Code.NODE_EXISTS:
            raise ZooKeeperError(reply.code, paths.CONTROLLER_EPOCH)
        result = await self.get_controller_epoch()
        if result is None:
            raise ZooKeeperError(Code.NO_NODE, paths.CONTROLLER_EPOCH)
        return result

    async def _check_controller_and_epoch(self, broker: int, new_epoch: int) -> tuple[int, int]:
        """Check whether an earlier attempt won whose response was lost."""
        current = await self.get_controller_id()
        if current is None:
            raise ControllerMoved("the controller's node went away while electing")
        if current != broker:
            raise ControllerMoved(f"broker {current} was elected")
        result = await self.get_controller_epoch()
        if result is None or result[0] != new_epoch:
            raise ControllerMoved(
                "this broker created /controller, but another one raised the epoch"
            )
        return result

    async def delete_controller(self, epoch_zk_version: int) -> None:
        """Fenced delete of `/controller`, which forces an election."""
        await self.delete_paths([paths.CONTROLLER], epoch_zk_version)

    # -- brokers and topics ------------------------------------------------------------------------

    async def get_sorted_broker_list(self) -> list[int]:
        return sorted(int(name) for name in await self.get_children(paths.BROKER_IDS))

    async def get_all_broker_and_epochs(self) -> dict[int, tuple[BrokerInfo, int]]:
        """All registrations with their broker epochs (getAllBrokerAndEpochsInCluster)."""
        return await self.get_brokers_and_epochs(await self.get_sorted_broker_list())

    async def get_brokers_and_epochs(
        self, brokers: Sequence[int]
    ) -> dict[int, tuple[BrokerInfo, int]]:
        """The registrations of these brokers; those without one are left out."""
        replies = await self._read_all([paths.broker_id(b) for b in brokers])
        brokers_and_epochs = {}
        for broker, reply in zip(brokers, replies, strict=True):
            if reply is not None and reply.stat is not None:
                path = paths.broker_id(broker)
                info = self._decoded(codec_admin.decode_broker, path, reply.data)
                if info is not None:
                    brokers_and_epochs[broker] = (info, reply.stat.czxid)
        return brokers_and_epochs

    async def get_broker(self, broker: int) -> BrokerInfo | None:
        path = paths.broker_id(broker)
        return await self._read(path, partial(codec_admin.decode_broker, path))

    async def get_all_topics(self, *, register_watch: bool) -> list[str]:
        return await self._children(GetChildren(paths.TOPICS, register_watch))

    async def get_full_replica_assignment_for_topics(
        self, topics: Iterable[str]
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """The replicas of each partition; topics without a readable znode are left out."""
        names = list(topics)
        replies = await self._read_all([paths.topic(t) for t in names])
        assignments: dict[TopicPartition, ReplicaAssignment] = {}
        for name, reply in zip(names, replies, strict=True):
            if reply is not None:
                path = paths.topic(name)
                assignment = self._decoded(codec.decode_topic, path, reply.data)
                self._topic_ids[name] = self._decoded(codec.decode_topic_id, path, reply.data) or ""
                for partition, replicas in (assignment or {}).items():
                    assignments[TopicPartition(name, partition)] = replicas
        if not self._client_version.creates_leaf_first:
            return assignments
        # Kafka reads into a mutable HashMap, and creates new partitions one by one in its order
        # (ZkUtils.scala@1.0.2 getReplicaAssignmentForTopics).
        ordered = self._client_version.scala.map_order(
            assignments, lambda p: topic_and_partition_hash(*p)
        )
        return {partition: assignments[partition] for partition in ordered}

    async def create_topic_assignment(
        self, topic: str, assignment: Mapping[int, ReplicaAssignment]
    ) -> None:
        """Create the topic's znode; never fenced (admin API)."""
        if self._client_version.topic_version == 1:
            assignment = self._in_table(assignment)
        await self._create_recursive(
            paths.topic(topic), self._encode_topic(assignment), fail_if_exists=True
        )

    async def add_partitions(self, topic: str, assignment: Mapping[int, ReplicaAssignment]) -> None:
        """Overwrite the topic's znode with its old and new partitions; never fenced (admin API)."""
        if self._client_version.creates_leaf_first:
            assignment = self._in_table(assignment)
        await self.set_topic_assignment(topic, assignment)

    def _in_table(
        self, assignment: Mapping[int, ReplicaAssignment]
    ) -> dict[int, ReplicaAssignment]:
        """In the order of a mutable HashMap over the partitions' names (AdminUtils.scala@1.0.2)."""
        names = self._client_version.scala.map_order(map(str, assignment), java_hash)
        return {int(name): assignment[int(name)] for name in names}

    def _encode_topic(
        self, assignment: Mapping[int, ReplicaAssignment], topic_id: str = ""
    ) -> bytes:
        return codec.encode_topic(assignment, self._client_version.topic_version, topic_id)

    # -- partition states --------------------------------------------------------------------------

    async def get_topic_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """The states that exist and can be decoded."""
        replies = await self._read_all([_state_path(p) for p in partitions])
        states = {}
        for partition, reply in zip(partitions, replies, strict=True):
            state = None if reply is None else self.decode_state(partition, reply)
            if state is not None:
                states[partition] = state
        return states

    async def get_topic_partition_states_raw(
        self, partitions: Sequence[TopicPartition]
    ) -> list[Reply]:
        return await self.batch([GetData(_state_path(p)) for p in partitions])

    def decode_state(
        self, partition: TopicPartition, reply: Reply
    ) -> LeaderIsrAndControllerEpoch | None:
        assert reply.stat is not None
        version = reply.stat.version
        return self._decoded(codec.decode_state, _state_path(partition), reply.data, version)

    async def create_topic_partition_states_raw(
        self,
        states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch],
        epoch_zk_version: int,
    ) -> dict[TopicPartition, Reply]:
        """Create `…/partitions` per topic, `…/partitions/<p>`, then the states; the results of the
        first two are ignored. Up to 1.0 each state is created on its own, and its parents if they
        are missing.
        """
        if self._client_version.creates_leaf_first:
            return {p: await self._create_state(p, s) for p, s in states.items()}
        topics = list(dict.fromkeys(p.topic for p in states))
        await self.fenced_batch(
            [Create(paths.topic_partitions(t), None) for t in topics], epoch_zk_version
        )
        nodes = [Create(paths.topic_partition(*p), None) for p in states]
        await self.fenced_batch(nodes, epoch_zk_version)
        # Only these results count: the paths above may exist from another partition or an earlier
        # attempt.
        creates = [Create(_state_path(p), codec.encode_state(s)) for p, s in states.items()]
        replies = await self.fenced_batch(creates, epoch_zk_version)
        return dict(zip(states, replies, strict=True))

    async def _create_state(
        self, partition: TopicPartition, state: LeaderIsrAndControllerEpoch
    ) -> Reply:
        """createPersistentPath, without fencing."""
        path = _state_path(partition)
        try:
            await self._create_recursive(path, codec.encode_state(state), fail_if_exists=True)
        except ZooKeeperError as error:
            return Reply(error.code)
        return Reply(Code.OK)

    async def update_leader_and_isr(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        controller_epoch: int,
        epoch_zk_version: int,
    ) -> UpdateLeaderAndIsrResult:
        """The controller's conditional writes: one fenced setData per partition (spec §2.5). An
        error of the whole batch applies to every partition; ControllerMoved is raised."""
        payloads = {
            p: codec.encode_state(LeaderIsrAndControllerEpoch(s, controller_epoch))
            for p, s in states.items()
        }
        writes = [SetData(_state_path(p), payloads[p], s.zk_version) for p, s in states.items()]
        result = UpdateLeaderAndIsrResult({}, [])
        try:
            replies = await self.fenced_batch(writes, epoch_zk_version)
        except ZooKeeperError as error:
            result.finished.update(dict.fromkeys(states, error))
            return result
        for (partition, state), reply in zip(states.items(), replies, strict=True):
            version: int | None = None
            if reply.code is Code.OK:
                assert reply.stat is not None
                version = reply.stat.version
            elif (
                reply.code is Code.BAD_VERSION
                and self._client_version.controller_recognises_own_writes
            ):
                checker = partial(self._version_of_own_write, partition, payloads[partition])
                version = await self._read_and_check(_state_path(partition), checker)
            if version is not None:
                result.finished[partition] = LeaderAndIsr(
                    state.leader, state.leader_epoch, state.isr, version
                )
            elif reply.code is Code.BAD_VERSION:
                result.to_retry.append(partition)
            else:
                result.finished[partition] = ZooKeeperError(reply.code, _state_path(partition))
        return result

    def _version_of_own_write(
        self, partition: TopicPartition, data: bytes, current: Reply
    ) -> int | None:
        """The version of a state that was read, if it is what `data` says; otherwise None
        (ReplicationUtils.checkLeaderAndIsrZkData)."""
        assert current.stat is not None
        # Both are decoded with the current version, so only the payloads are compared.
        written = codec.decode_state(_state_path(partition), data, current.stat.version)
        return current.stat.version if self.decode_state(partition, current) == written else None

    async def conditional_update_path(
        self, path: str, data: bytes, expected_version: int, checker: Callable[[Reply], int | None]
    ) -> Updated | Rejected:
        """setData at `expected_version`. After BADVERSION the znode is read, and `checker` may
        recognise it as this same write (its response was lost): that version is then returned
        (conditionalUpdatePath, KAFKA-1382).
        """
        # Nothing updates an outdated version: a leader keeps it until a LeaderAndIsr with a greater
        # leader epoch arrives (H5).
        reply = await self.one(SetData(path, data, expected_version))
        if reply.code is Code.OK:
            assert reply.stat is not None
            return Updated(reply.stat.version)
        if reply.code is Code.BAD_VERSION and self._client_version.recognises_own_writes:
            version = await self._read_and_check(path, checker)
            return Rejected("BADVERSION") if version is None else Updated(version)
        if reply.code in (Code.NO_NODE, Code.BAD_VERSION):
            return Rejected(reply.code.name.replace("_", ""))
        raise ZooKeeperError(reply.code, path)

    async def _read_and_check(
        self, path: str, checker: Callable[[Reply], int | None]
    ) -> int | None:
        current = await self.one(GetData(path))
        return checker(current) if current.code is Code.OK else None

    async def update_isr(
        self, partition: TopicPartition, state: LeaderIsrAndControllerEpoch
    ) -> Updated | Rejected:
        """The leader's own ISR write: without fencing, with the checker
        (ReplicationUtils.updateLeaderAndIsr)."""
        data = codec.encode_state(state)
        checker = partial(self._version_of_own_write, partition, data)
        version = state.leader_and_isr.zk_version
        return await self.conditional_update_path(_state_path(partition), data, version, checker)

    # -- ISR change notifications ------------------------------------------------------------------

    async def propagate_isr_changes(self, partitions: Iterable[TopicPartition]) -> str:
        """Create one sequential znode that lists the partitions; returns its path."""
        maps = self._client_version.names_partitions_in_scala_maps
        data = codec.encode_isr_change(partitions, self._client_version.scala, scala_maps=maps)
        prefix = paths.isr_change_notification_sequence()
        reply = await self.one(Create(prefix, data, CreateMode.PERSISTENT_SEQUENTIAL))
        expect_ok(reply, prefix)
        return reply.path

    async def get_all_isr_change_notifications(
        self, listed: Sequence[str] | None = None
    ) -> list[str]:
        """The sequence numbers of the existing notifications, or of those listed by the event."""
        names = listed
        if names is None:
            names = await self.get_children(paths.ISR_CHANGE_NOTIFICATION)
        return [
            paths.isr_change_sequence_number(n)
            for n in names
            if n.startswith(paths.ISR_CHANGE_PREFIX)
        ]

    async def get_partitions_from_isr_change_notifications(
        self, sequence_numbers: Sequence[str]
    ) -> list[Sequence[TopicPartition]]:
        """The partitions that each notification names; missing or unreadable notifications are
        skipped."""
        where = [paths.isr_change_notification_sequence(n) for n in sequence_numbers]
        named: list[Sequence[TopicPartition]] = []
        for path, reply in zip(where, await self._read_all(where), strict=True):
            if reply is not None:
                named.append(self._decoded(codec.decode_isr_change, path, reply.data) or ())
        return named

    async def delete_isr_change_notifications(
        self, sequence_numbers: Sequence[str], epoch_zk_version: int
    ) -> None:
        nodes = [paths.isr_change_notification_sequence(n) for n in sequence_numbers]
        await self.delete_paths(nodes, epoch_zk_version)

    # -- log directory events, admin commands ------------------------------------------------------

    async def get_all_log_dir_event_notifications(
        self, listed: Sequence[str] | None = None
    ) -> list[str]:
        names = listed
        if names is None:
            names = await self.get_children(paths.LOG_DIR_EVENT_NOTIFICATION)
        return [
            paths.log_dir_event_sequence_number(n)
            for n in names
            if n.startswith(paths.LOG_DIR_EVENT_PREFIX)
        ]

    async def delete_log_dir_event_notifications(
        self, sequence_numbers: Sequence[str], epoch_zk_version: int
    ) -> None:
        nodes = [paths.log_dir_event_notification_sequence(n) for n in sequence_numbers]
        await self.delete_paths(nodes, epoch_zk_version)

    async def get_topic_deletions(self) -> list[str]:
        return await self.get_children(paths.DELETE_TOPICS)

    async def get_preferred_replica_election(self) -> list[TopicPartition]:
        path = paths.PREFERRED_REPLICA_ELECTION
        return list(await self._read(path, codec.decode_preferred_election) or ())

    async def create_preferred_replica_election(self, partitions: Iterable[TopicPartition]) -> Code:
        """A tool's command; never fenced."""
        data = codec.encode_preferred_election(list(partitions))
        return (await self.one(Create(paths.PREFERRED_REPLICA_ELECTION, data))).code

    async def delete_preferred_replica_election(self, epoch_zk_version: int) -> None:
        """Sent whether or not the znode exists, as in Kafka."""
        await self.delete_paths([paths.PREFERRED_REPLICA_ELECTION], epoch_zk_version)

    async def delete_topic_deletion(self, topic: str, epoch_zk_version: int) -> None:
        """Delete the marker of a completed topic deletion."""
        await self.delete_paths([paths.delete_topic(topic)], epoch_zk_version)

    async def create_delete_topic_path(self, topic: str) -> Code:
        """Create the marker of a topic deletion (admin API, never fenced)."""
        return (await self.one(Create(paths.delete_topic(topic), None))).code

    async def set_topic_assignment(
        self,
        topic: str,
        assignment: Mapping[int, ReplicaAssignment],
        epoch_zk_version: int = NO_FENCING,
    ) -> None:
        """Overwrite the topic's znode in any version (the last writer wins)."""
        topic_id = self._topic_ids.get(topic, "")
        path, data = paths.topic(topic), self._encode_topic(assignment, topic_id)
        write = SetData(path, data, MATCH_ANY_VERSION)
        expect_ok((await self.fenced_batch([write], epoch_zk_version))[0], path)

    async def get_partition_reassignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The targets in the command znode; empty if it is absent or unreadable."""
        return await self._read(paths.REASSIGN_PARTITIONS, codec_admin.decode_reassignment) or {}

    async def create_partition_reassignment(
        self, moves: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Code:
        """A tool's command; never fenced."""
        data = codec_admin.encode_reassignment(moves)
        return (await self.one(Create(paths.REASSIGN_PARTITIONS, data))).code

    async def set_or_create_partition_reassignment(
        self, left: Mapping[TopicPartition, tuple[int, ...]], epoch_zk_version: int
    ) -> None:
        """Overwrite the command znode with the remaining moves; on NONODE create it."""
        path, data = paths.REASSIGN_PARTITIONS, codec_admin.encode_reassignment(left)
        write = SetData(path, data, MATCH_ANY_VERSION)
        reply = (await self.fenced_batch([write], epoch_zk_version))[0]
        if reply.code is Code.NO_NODE:
            reply = (await self.fenced_batch([Create(path, data)], epoch_zk_version))[0]
        expect_ok(reply, path)

    async def delete_partition_reassignment(self, epoch_zk_version: int) -> None:
        """Delete the command znode after its last move. From 2.4 on this goes through deletePath,
        which lists the children, although this znode has none."""
        if self._client_version.lists_before_deleting:
            await self.delete_recursive(paths.REASSIGN_PARTITIONS, epoch_zk_version)
        else:
            await self.delete_paths([paths.REASSIGN_PARTITIONS], epoch_zk_version)

    async def get_broker_ids_from_log_dir_events(
        self, sequence_numbers: Sequence[str]
    ) -> list[int]:
        """The brokers whose log directories failed; missing or unreadable notifications are
        skipped."""
        where = [paths.log_dir_event_notification_sequence(n) for n in sequence_numbers]
        named: dict[int, None] = {}
        for path, reply in zip(where, await self._read_all(where), strict=True):
            if reply is not None:
                event = self._decoded(codec_admin.decode_log_dir_event, path, reply.data)
                if event is not None:
                    named[event.broker] = None
        return list(named)

    async def propagate_log_dir_event(self, broker: int) -> str:
        """Create one sequential znode that reports a failed log directory of `broker`; returns its
        path."""
        data = codec_admin.encode_log_dir_event(codec_admin.LogDirEvent(broker))
        prefix = paths.log_dir_event_notification_sequence()
        reply = await self.one(Create(prefix, data, CreateMode.PERSISTENT_SEQUENTIAL))
        expect_ok(reply, prefix)
        return reply.path


def _state_path(partition: TopicPartition) -> str:
    return paths.topic_partition_state(partition.topic, partition.partition)
