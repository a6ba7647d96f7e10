"""KafkaApis: passes each request to the part of the broker that processes it.

Owns the checks before the work (broker epoch, active controller) and the format of error responses.
Source: server/KafkaApis.scala@2.6.3; spec §4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from emulator.kafka.broker.admin import AdminManager
from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.elect_leaders import ElectLeaders, OnResults
from emulator.kafka.broker.fetch_session import FetchSessions
from emulator.kafka.broker.local_reads import FetchedPartitions
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.replica_manager import Produced, ReplicaManager
from emulator.kafka.broker.request_handlers import Received
from emulator.kafka.model.errors import Errors, IllegalState, KafkaError, NotAssignedReplica
from emulator.kafka.model.topic_names import GROUP_METADATA_TOPIC
from emulator.kafka.profiles.guards.following import SESSION_EPOCHS_KEPT
from emulator.kafka.profiles.guards.metadata import UNKNOWN_PARTITIONS_REFUSED
from emulator.kafka.protocol import groups as g
from emulator.kafka.protocol import messages as m
from emulator.kafka.protocol.transport import ServerConnection
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.errors import MalformedZNode, ZooKeeperError
from zk.scala.java_hash import id_set_order
from zk.scala.library import LIBRARIES, immutable_set

StatesRequest = TypeVar("StatesRequest", m.LeaderAndIsrRequest, m.UpdateMetadataRequest)

NO_TRANSACTIONS = "transactions are not emulated: leave transactional.id out"


FIRST_WITH_SESSIONS = 7
"""The Fetch version from which on a response has an error of its own (1.1)."""


class ControllerPort(Protocol):
    """The controller in this process, as seen by requests."""

    @property
    def is_active(self) -> bool: ...

    def controlled_shutdown(
        self,
        request: m.ControlledShutdownRequest,
        respond: Callable[[m.ControlledShutdownResponse], None],
    ) -> None: ...

    def alter_isrs(
        self, request: m.AlterIsrRequest, respond: Callable[[m.AlterIsrResponse], None]
    ) -> None: ...

    def is_topic_queued_for_deletion(self, topic: str) -> bool: ...

    def elect_leaders(
        self,
        partitions: tuple[TopicPartition, ...],
        election_type: m.ElectionType,
        done: Callable[[m.ElectionResults], Awaitable[None]],
    ) -> None: ...

    def alter_partition_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], done: OnResults
    ) -> None: ...

    def list_partition_reassignments(
        self,
        partitions: tuple[TopicPartition, ...] | None,
        done: Callable[[tuple[m.Reassignment, ...] | Errors], None],
    ) -> None: ...


class ProducerIdPort(Protocol):
    """Assigns producer ids."""

    async def generate_producer_id(self) -> int: ...


class GroupPort(Protocol):
    """The coordinator of consumer groups in this process."""

    def partition_for(self, group: str) -> int: ...

    async def handle(self, request: g.GroupRequest, connection: ServerConnection) -> None: ...

    async def handle_deleted_partitions(self, partitions: Sequence[TopicPartition]) -> None: ...


class KafkaApis:
    """The entry points of one broker."""

    def __init__(
        self,
        context: BrokerContext,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        admin: AdminManager,
        controller: ControllerPort,
        producer_ids: ProducerIdPort,
        groups: GroupPort,
    ) -> None:
        self._context, self._replicas = context, replica_manager
        self._metadata_cache, self._admin = metadata_cache, admin
        self._controller, self._producer_ids, self._groups = controller, producer_ids, groups
        self._elections = ElectLeaders(context, metadata_cache)
        self._sessions = FetchSessions(
            context.config.max_incremental_fetch_session_cache_slots,
            context.now_ms,
            keeps_epochs=SESSION_EPOCHS_KEPT in context.guards,
        )
        self._refuses_unknown = UNKNOWN_PARTITIONS_REFUSED in context.guards
        self._has_obeyed = False
        """Whether the controller has had a response from this process."""

    async def handle(self, received: Received) -> None:  # noqa: C901 - a case for each request
        """Process one request; an exception that arrives here becomes its error response. Checks
        that several requests share come before them (KafkaApis.scala@2.6.3 handle)."""
        request, connection = received.request, received.connection
        if self._context.kernel.may_wait_at("handle_request"):
            name = type(request).__name__.removesuffix("Request")
            await self._context.kernel.checkpoint("handle_request", name)
        controller, admin = self._controller, self._admin
        try:
            match request:
                case m.FetchRequest():
                    await self._fetch(request, connection)
                case m.ProduceRequest():
                    await self._produce(request, connection)
                case m.OffsetsForLeaderEpochRequest():
                    connection.respond(await self._replicas.last_offset_for_leader_epoch(request))
                case m.ListOffsetsRequest():
                    connection.respond(await self._list_offsets(request))
                case m.MetadataRequest():
                    connection.respond(await self._metadata(request))
                case m.DeleteRecordsRequest():
                    await self._replicas.deletion.delete_records(request, connection.respond)
                case m.ApiVersionsRequest():
                    connection.respond(m.ApiVersionsResponse())
                case m.InitProducerIdRequest():
                    connection.respond(await self._init_producer_id(request))
                case g.FindCoordinatorRequest():
                    connection.respond(await self._find_coordinator(request))
                # -- from the controller and from other brokers
                # Meant for an earlier process of this broker (isBrokerEpochStale, KIP-380). -1: the
                # controller is older than 2.2. A greater epoch is accepted: the controller may see
                # a registration before the broker has the response to it.
                case (
                    m.LeaderAndIsrRequest() | m.UpdateMetadataRequest() | m.StopReplicaRequest()
                ) if 0 <= request.broker_epoch < self._context.broker_epoch:
                    self._context.refused(request, Errors.STALE_BROKER_EPOCH)
                    connection.respond(error_response(request, Errors.STALE_BROKER_EPOCH))
                case m.LeaderAndIsrRequest() | m.UpdateMetadataRequest() | m.StopReplicaRequest():
                    await self._obey(request, connection)
                case m.ControlledShutdownRequest():
                    controller.controlled_shutdown(request, connection.respond)
                case m.AlterIsrRequest():
                    self._alter_isr(request, connection)
                # -- administration. Only the active controller's broker processes these, although
                # the first three only write to ZooKeeper, which any broker could do.
                case (
                    m.CreateTopicsRequest() | m.CreatePartitionsRequest() | m.DeleteTopicsRequest()
                ) if not controller.is_active:
                    connection.respond(m.AdminResponse(Errors.NOT_CONTROLLER))
                case m.CreateTopicsRequest():
                    await admin.create_topic(request, connection.respond)
                case m.CreatePartitionsRequest():
                    if controller.is_topic_queued_for_deletion(request.topic):
                        connection.respond(m.AdminResponse(Errors.INVALID_TOPIC_EXCEPTION))
                    else:
                        await admin.create_partitions(request, connection.respond)
                case m.DeleteTopicsRequest():
                    await admin.delete_topic(request, connection.respond)
                case m.ElectLeadersRequest():
                    self._elect_leaders(request, connection)
                case m.AlterPartitionReassignmentsRequest():
                    controller.alter_partition_reassignments(
                        dict(request.targets), partial(_respond_per_partition, connection)
                    )
                case m.ListPartitionReassignmentsRequest():
                    controller.list_partition_reassignments(
                        request.partitions,
                        lambda result: connection.respond(
                            m.AdminResponse(result)
                            if isinstance(result, Errors)
                            else m.AdminResponse(Errors.NONE, reassignments=result)
                        ),
                    )
                case m.AlterConfigsRequest():
                    connection.respond(await admin.alter_configs(request))
                case m.DescribeConfigsRequest():
                    connection.respond(await admin.describe_configs(request))
                case _:
                    await self._groups.handle(request, connection)
        except (ZooKeeperError, MalformedZNode, IllegalState, NotAssignedReplica) as error:
            # Kafka catches any exception of a handler. The thread continues with the next request,
            # and the work done before the exception is not undone.
            self._context.failed(type(request).__name__, error)
            version = self._context.profile.request_versions["Fetch"]
            if isinstance(request, m.FetchRequest) and version < FIRST_WITH_SESSIONS:
                connection.respond(self._failed_fetch(request))
            else:
                connection.respond(error_response(request, Errors.UNKNOWN_SERVER_ERROR))

    def _failed_fetch(self, request: m.FetchRequest) -> m.FetchResponse:
        """The error of each partition. What the follower cannot read is an error of the whole
        response here."""
        error, profile = Errors.UNKNOWN_SERVER_ERROR, self._context.profile
        failed = (m.FetchedPartition(f.partition, error, -1, -1, ()) for f in request.partitions)
        of_all = error if profile.fetch_errors_are_unreadable else Errors.NONE
        return m.FetchResponse(of_all, 0, tuple(failed))

    # -- metadata ----------------------------------------------------------------------------------

    async def _metadata(self, request: m.MetadataRequest) -> m.MetadataResponse:
        """Unknown topics may be created (getTopicMetadata); the client repeats its request until
        they have leaders."""
        response = self._metadata_cache.metadata(request.topics)
        if not request.allow_auto_topic_creation:
            return response
        known, config = self._metadata_cache.topics(), self._context.config
        errors = []
        for topic in request.topics:
            if topic in known:
                continue
            if topic == GROUP_METADATA_TOPIC:
                errors.append((topic, await self._create_offsets_topic()))
            elif config.auto_create_topics_enable:
                errors.append(
                    (topic, await self._create_topic(m.CreateTopicsRequest(topic, (), ())))
                )
        return msgspec.structs.replace(response, errors=tuple(errors)) if errors else response

    async def _create_topic(self, request: m.CreateTopicsRequest) -> Errors:
        """Create a topic from this broker, even if it is not the controller, without waiting
        (createTopic)."""
        results: list[m.AdminResponse] = []
        await self._admin.create_topic(request, results.append, waits=False)
        error = results[0].error
        if error in (Errors.NONE, Errors.TOPIC_ALREADY_EXISTS):
            return Errors.LEADER_NOT_AVAILABLE
        return error

    async def _create_offsets_topic(self) -> Errors:
        """Create `__consumer_offsets` once there are enough brokers for its replicas
        (createInternalTopic)."""
        config, alive = self._context.config, len(self._metadata_cache.alive_brokers())
        factor = config.offsets_topic_replication_factor
        if alive < factor:
            message = (
                f"{alive} brokers are alive, too few for {factor} replicas of"
                f" {GROUP_METADATA_TOPIC} (offsets.topic.replication.factor)"
            )
            failed = KafkaError(Errors.INVALID_REPLICATION_FACTOR, message)
            self._context.failed("consumer groups", failed)
            return Errors.COORDINATOR_NOT_AVAILABLE
        return await self._create_topic(
            m.CreateTopicsRequest(
                GROUP_METADATA_TOPIC,
                (),
                (
                    ("cleanup.policy", "compact"),
                    ("segment.bytes", "104857600"),
                    ("compression.type", "producer"),
                ),
                num_partitions=config.offsets_topic_num_partitions,
                replication_factor=factor,
            )
        )

    async def _find_coordinator(
        self, request: g.FindCoordinatorRequest
    ) -> g.FindCoordinatorResponse:
        """The leader of the group's partition of `__consumer_offsets`. The first request creates
        that topic (handleFindCoordinatorRequest)."""
        if request.key_type != 0:
            # COORDINATOR_NOT_AVAILABLE would make the client repeat the request forever.
            return g.FindCoordinatorResponse(Errors.INVALID_REQUEST, NO_TRANSACTIONS)
        if GROUP_METADATA_TOPIC not in self._metadata_cache.topics():
            await self._create_offsets_topic()
        number = self._groups.partition_for(request.key)
        state = self._metadata_cache.partition(TopicPartition(GROUP_METADATA_TOPIC, number))
        leader = self._metadata_cache.alive_broker(state.leader) if state is not None else None
        if leader is None:
            return g.FindCoordinatorResponse(Errors.COORDINATOR_NOT_AVAILABLE)
        return g.FindCoordinatorResponse(Errors.NONE, "", leader.broker, leader.host, leader.port)

    # -- data --------------------------------------------------------------------------------------

    async def _produce(self, request: m.ProduceRequest, connection: ServerConnection) -> None:
        unknown: dict[TopicPartition, m.ProducedPartition] = {}
        if self._refuses_unknown:
            known, error = self._metadata_cache.contains, Errors.UNKNOWN_TOPIC_OR_PARTITION
            for p in request.partitions:
                if not known(p.partition):
                    unknown[p.partition] = m.ProducedPartition(p.partition, error, -1)

        def respond(produced: Produced) -> None:
            """With acks=0 there is no error response. The connection is closed instead, so that the
            client refreshes its metadata (KafkaApis.scala@2.6.3 handleProduceRequest,
            sendResponseCallback).
            """
            produced = (*produced, *unknown.values())
            if request.acks != 0:
                connection.respond(m.ProduceResponse(produced))
            elif any(partition.error is not Errors.NONE for partition in produced):
                # The only error signal that a producer with acks=0 can get.
                connection.hang_up()
            else:
                # No bytes are sent, but the connection is free for the next request.
                connection.respond(None)

        if unknown:
            # Their error waits until the others are acknowledged.
            others = tuple(p for p in request.partitions if p.partition not in unknown)
            request = replace(request, partitions=others)
        await self._replicas.append_records(request, respond)

    async def _init_producer_id(self, request: m.InitProducerIdRequest) -> m.InitProducerIdResponse:
        """Transactions are not emulated; InitProducerId has no message field to say so."""
        if request.transactional_id is not None:
            return m.InitProducerIdResponse(Errors.INVALID_REQUEST)
        producer_id = await self._producer_ids.generate_producer_id()
        return m.InitProducerIdResponse(Errors.NONE, producer_id, 0)

    async def _obey(self, request: m.ControlRequest, connection: ServerConnection) -> None:
        """A request of the controller."""
        await self._context.kernel.checkpoint("control_request")
        match request:
            case m.LeaderAndIsrRequest():
                states = self._as_received(request)
                connection.respond(await self._replicas.become_leader_or_follower(states))
            case m.UpdateMetadataRequest():
                response = await self._update_metadata(self._as_received(request))
                if not self._has_obeyed and self._context.profile.restarted_roles == "slowest":
                    await self._context.kernel.checkpoint("metadata_answered")
                connection.respond(response)
            case m.StopReplicaRequest():
                connection.respond(await self._replicas.stop_replicas(request))
                # After the response, so the controller's next request arrives meanwhile. It waits
                # for the fetchers' lock (KafkaApis.scala@2.6.3 handleStopReplicaRequest).
                await self._replicas.fetchers.shutdown_idle_fetcher_threads()
        self._has_obeyed = True

    async def _fetch(self, request: m.FetchRequest, connection: ServerConnection) -> None:
        context = self._sessions.context_of(request)
        if isinstance(context, Errors):
            connection.respond(m.FetchResponse(context, 0, ()))
            return
        known, error = self._metadata_cache.contains, Errors.UNKNOWN_TOPIC_OR_PARTITION
        unknown: dict[TopicPartition, m.FetchedPartition] = {}
        if self._refuses_unknown:
            for fetch in context.in_turn():
                partition = fetch.partition
                if not known(partition):
                    unknown[partition] = m.FetchedPartition(partition, error, -1, -1, ())

        def respond(fetched: FetchedPartitions) -> None:
            response, without_records = context.respond((*fetched, *unknown.values()))
            if request.replica_id >= 0:
                # The quota counts the bytes sent: after the session has removed unchanged
                # partitions.
                self._replicas.reads.record_sent(response.partitions)
                # A partition that was removed from the cache while the fetch waited stays awake: an
                # idle one would not be looked up again.
                idle = [cached for cached in without_records if known(cached.partition)]
                if idle:
                    self._replicas.reads.idle(request.replica_id, idle)
            connection.respond(response)

        if request.replica_id >= 0:
            # A leader proposes ISR members with the broker epochs of their fetches (KIP-903).
            self._context.follower_epochs[request.replica_id] = request.replica_epoch
        await self._replicas.fetch_messages(request, context, respond, unknown)

    async def _list_offsets(self, request: m.ListOffsetsRequest) -> m.ListOffsetsResponse:
        hosted = self._replicas.partitions.get(request.partition)
        if hosted is None:
            return m.ListOffsetsResponse(self._replicas.error_of_unhosted(request.partition), -1)
        await hosted.lock.pass_read()
        log = hosted.leader_log_or_error(request.current_leader_epoch)
        if isinstance(log, Errors):
            return m.ListOffsetsResponse(log, -1)
        if request.timestamp_ms is not None:
            timed = hosted.offset_for_time(request.timestamp_ms, log)
            if isinstance(timed, Errors):
                return m.ListOffsetsResponse(timed, -1)
            offset, timestamp_ms, epoch = timed
            return m.ListOffsetsResponse(Errors.NONE, offset, epoch, timestamp_ms)
        # A leader always knows its log start, but not always the end of its committed records.
        if request.earliest:
            start = log.log_start_offset
            return m.ListOffsetsResponse(Errors.NONE, start, log.epochs.epoch_of_start(start))
        latest = hosted.latest_offset(request.replica_id, log)
        if isinstance(latest, Errors):
            return m.ListOffsetsResponse(latest, -1)
        return m.ListOffsetsResponse(Errors.NONE, latest, hosted.leader_epoch)

    # -- control -----------------------------------------------------------------------------------

    def _as_received(self, request: StatesRequest) -> StatesRequest:
        """The request as this version reads it: up to 0.10 the replicas are a set
        (LeaderAndIsrRequest.scala@0.9.0.1 PartitionStateInfo, LeaderAndIsrRequest.java@0.10.2.2,
        MetadataCache.scala@0.10.2.2 partitionStateToPartitionStateInfo)."""
        profile = self._context.profile
        if profile.received_replicas == "in-order":
            return request
        library = LIBRARIES[profile.scala]

        def read(replicas: tuple[int, ...]) -> tuple[int, ...]:
            if profile.received_replicas == "scala-set":
                return immutable_set(replicas, library, int)[0]
            listed = id_set_order(replicas)
            if isinstance(request, m.UpdateMetadataRequest):
                listed = library.set_order(listed, int)
            return tuple(listed)

        states = (replace(state, replicas=read(state.replicas)) for state in request.states)
        return replace(request, states=tuple(states))

    async def _update_metadata(self, request: m.UpdateMetadataRequest) -> m.UpdateMetadataResponse:
        try:
            deleted = await self._replicas.maybe_update_metadata_cache(request)
            if deleted:
                await self._groups.handle_deleted_partitions(deleted)
            # The waiting requests depend on the cache: check them after the update.
            await self._admin.metadata_changed(s.partition for s in request.states)
            await self._elections.metadata_changed(s.partition for s in request.states)
        except KafkaError as failed:
            return m.UpdateMetadataResponse(failed.error)
        return m.UpdateMetadataResponse(Errors.NONE)

    def _alter_isr(self, request: m.AlterIsrRequest, connection: ServerConnection) -> None:
        """A version without AlterIsr closes the connection, or has announced this before
        (ApiVersions). UNSUPPORTED_VERSION represents both (`controller_channel`)."""
        error = Errors.NOT_CONTROLLER
        if "AlterIsr" not in self._context.profile.request_versions:
            error = Errors.UNSUPPORTED_VERSION
        elif self._controller.is_active:
            self._controller.alter_isrs(request, connection.respond)
            return
        partitions = tuple(p.partition for p in request.partitions)
        self._context.emit(events.AlterIsrRefused, request.broker, partitions, error.name)
        connection.respond(m.AlterIsrResponse(error))

    # -- administration ----------------------------------------------------------------------------

    def _elect_leaders(self, request: m.ElectLeadersRequest, connection: ServerConnection) -> None:
        """A request for all partitions gets no results for those that needed no election."""
        partitions = request.partitions
        unneeded = Errors.ELECTION_NOT_NEEDED if partitions is None else None
        # The time in the controller's queue counts towards the request's timeout.
        deadline_ms = self._context.now_ms() + request.timeout_ms

        def respond(results: dict[TopicPartition, Errors]) -> None:
            _respond_per_partition(
                connection, {p: e for p, e in results.items() if e is not unneeded}
            )

        async def done(results: m.ElectionResults) -> None:
            await self._elections.answer(results, deadline_ms, respond)

        self._controller.elect_leaders(
            self._metadata_cache.partitions() if partitions is None else partitions,
            request.election_type,
            done,
        )


def _respond_per_partition(
    connection: ServerConnection, results: dict[TopicPartition, Errors]
) -> None:
    """Respond with all results; the first error is that of the whole request."""
    error = next((e for e in results.values() if e is not Errors.NONE), Errors.NONE)
    connection.respond(m.AdminResponse(error, partitions=tuple(results.items())))


_OF_AN_ERROR: Mapping[type[m.Request], Callable[[Errors], m.Response]] = {
    m.LeaderAndIsrRequest: m.LeaderAndIsrResponse,
    m.UpdateMetadataRequest: m.UpdateMetadataResponse,
    m.StopReplicaRequest: m.StopReplicaResponse,
    m.InitProducerIdRequest: m.InitProducerIdResponse,
    g.FindCoordinatorRequest: g.FindCoordinatorResponse,
    g.JoinGroupRequest: g.JoinGroupResponse,
    g.SyncGroupRequest: g.SyncGroupResponse,
    g.HeartbeatRequest: g.HeartbeatResponse,
    g.LeaveGroupRequest: g.LeaveGroupResponse,
    g.OffsetFetchRequest: g.OffsetFetchResponse,
    g.ListGroupsRequest: g.ListGroupsResponse,
    g.DescribeGroupsRequest: g.DescribeGroupsResponse,
    g.DeleteGroupsRequest: g.DeleteGroupsResponse,
}
"""Responses that have only an error."""


def error_response(request: m.Request, error: Errors) -> m.Response:
    """The response to a request that failed as a whole (AbstractRequest.java@2.6.3
    getErrorResponse)."""
    match request:
        case m.FetchRequest():
            return m.FetchResponse(error, 0, ())
        case m.ProduceRequest(partitions=partitions):
            return m.ProduceResponse(
                tuple(m.ProducedPartition(p.partition, error, -1) for p in partitions)
            )
        case m.DeleteRecordsRequest(offsets=offsets):
            return m.DeleteRecordsResponse(
                tuple(m.DeletedRecords(p, error, -1) for p, _ in offsets)
            )
        case g.OffsetCommitRequest(offsets=offsets):
            return g.OffsetCommitResponse(tuple((p, error) for p, _ in offsets))
    return _OF_AN_ERROR.get(type(request), m.AdminResponse)(error)
