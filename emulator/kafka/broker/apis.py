"""KafkaApis: which part of the broker answers which request.

Owns the checks that stand before the work (broker epoch, leadership of the cluster) and the shape
of answers on errors. Source: server/KafkaApis.scala@2.6.3; spec §4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from emulator.kafka.broker.admin import AdminManager
from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.elect_leaders import ElectLeaders, OnResults
from emulator.kafka.broker.fetch_session import FetchSessions
from emulator.kafka.broker.local_reads import Fetched
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.replica_manager import Produced, ReplicaManager
from emulator.kafka.broker.request_handlers import Received
from emulator.kafka.model.errors import Errors, IllegalState, KafkaError
from emulator.kafka.protocol.messages import (
    AdminResponse,
    AlterConfigsRequest,
    AlterIsrRequest,
    AlterIsrResponse,
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ElectionResults,
    ElectionType,
    ElectLeadersRequest,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    ProducedPartition,
    ProduceRequest,
    ProduceResponse,
    Reassignment,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from emulator.kafka.protocol.transport import ServerConnection
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.errors import ZooKeeperError

Handler = Callable[[Any, ServerConnection], Awaitable[None]]


class ControllerPort(Protocol):
    """The controller in this process, as far as requests concern it."""

    @property
    def is_active(self) -> bool: ...

    def controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        respond: Callable[[ControlledShutdownResponse], None],
    ) -> None: ...

    def alter_isrs(
        self, request: AlterIsrRequest, respond: Callable[[AlterIsrResponse], None]
    ) -> None: ...

    def is_topic_queued_for_deletion(self, topic: str) -> bool: ...

    def elect_leaders(
        self,
        partitions: tuple[TopicPartition, ...],
        election_type: ElectionType,
        done: Callable[[ElectionResults], Awaitable[None]],
    ) -> None: ...

    def alter_partition_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], done: OnResults
    ) -> None: ...

    def list_partition_reassignments(
        self,
        partitions: tuple[TopicPartition, ...] | None,
        done: Callable[[tuple[Reassignment, ...] | Errors], None],
    ) -> None: ...


class KafkaApis:
    """The entry points of one broker."""

    def __init__(
        self,
        context: BrokerContext,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        admin: AdminManager,
        broker_epoch: Callable[[], int],
        controller: ControllerPort,
    ) -> None:
        self._context, self._replicas = context, replica_manager
        self._metadata_cache, self._admin = metadata_cache, admin
        self._broker_epoch, self._controller = broker_epoch, controller
        self._elections = ElectLeaders(context, metadata_cache)
        self._sessions = FetchSessions(context.config.max_incremental_fetch_session_cache_slots)
        self._handlers: dict[type, Handler] = {
            FetchRequest: self._fetch,
            ProduceRequest: self._produce,
            LeaderAndIsrRequest: self._leader_and_isr,
            UpdateMetadataRequest: self._update_metadata,
            StopReplicaRequest: self._stop_replica,
            ControlledShutdownRequest: self._controlled_shutdown,
            AlterIsrRequest: self._alter_isr,
            OffsetsForLeaderEpochRequest: self._offsets_for_leader_epoch,
            ListOffsetsRequest: self._list_offsets,
            ApiVersionsRequest: self._api_versions,
            MetadataRequest: self._metadata,
            CreateTopicsRequest: self._create_topics,
            CreatePartitionsRequest: self._create_partitions,
            DeleteTopicsRequest: self._delete_topics,
            ElectLeadersRequest: self._elect_leaders,
            AlterPartitionReassignmentsRequest: self._alter_partition_reassignments,
            ListPartitionReassignmentsRequest: self._list_partition_reassignments,
            AlterConfigsRequest: self._alter_configs,
            DescribeConfigsRequest: self._describe_configs,
        }

    async def handle(self, received: Received) -> None:
        """Serve one request; an exception that reaches here is the request's answer."""
        request, connection = received.request, received.connection
        if self._context.kernel.may_wait_at("handle_request"):
            name = type(request).__name__.removesuffix("Request")
            await self._context.kernel.checkpoint("handle_request", name)
        try:
            await self._handlers[type(request)](request, connection)
        except (ZooKeeperError, IllegalState) as error:
            self._context.failed(type(request).__name__, error)
            connection.respond(_unknown_server_error(request))

    # -- data --------------------------------------------------------------------------------------

    async def _produce(self, request: ProduceRequest, connection: ServerConnection) -> None:
        def respond(produced: Produced) -> None:
            """With acks 0 nobody reads an error: the connection is closed, so that the client asks
            for metadata (KafkaApis.scala@2.6.3 handleProduceRequest, sendResponseCallback)."""
            if request.acks != 0:
                connection.respond(ProduceResponse(produced))
            elif any(one.error is not Errors.NONE for one in produced):
                # The only sign that a producer with acks 0 can get.
                connection.hang_up()
            else:
                connection.respond(None)

        await self._replicas.append_records(request, respond)

    async def _fetch(self, request: FetchRequest, connection: ServerConnection) -> None:
        context = self._sessions.context_of(request)
        if isinstance(context, Errors):
            connection.respond(FetchResponse(context, 0, ()))
            return

        def respond(fetched: Fetched) -> None:
            response, without_records = context.respond(fetched)
            if request.replica_id >= 0:
                self._replicas.reads.record_sent(response.partitions)
                if without_records:
                    self._replicas.reads.idle(request.replica_id, without_records)
            connection.respond(response)

        if request.replica_id >= 0:
            self._context.follower_epochs[request.replica_id] = request.replica_epoch
        await self._replicas.fetch_messages(request, context, respond)

    async def _offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest, connection: ServerConnection
    ) -> None:
        connection.respond(await self._replicas.last_offset_for_leader_epoch(request))

    async def _list_offsets(
        self, request: ListOffsetsRequest, connection: ServerConnection
    ) -> None:
        hosted = self._replicas.partitions.get(request.partition)
        if hosted is None:
            connection.respond(ListOffsetsResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION, -1))
            return
        await hosted.lock.pass_read()
        log = hosted.leader_log_or_error(request.current_leader_epoch)
        if isinstance(log, Errors):
            connection.respond(ListOffsetsResponse(log, -1))
            return
        found = hosted.latest_offset(request.replica_id, log)
        if isinstance(found, Errors) and not request.earliest:
            connection.respond(ListOffsetsResponse(found, -1))
            return
        offset = log.log_start_offset if request.earliest else found
        connection.respond(ListOffsetsResponse(Errors.NONE, offset, hosted.leader_epoch))

    async def _api_versions(self, _: ApiVersionsRequest, connection: ServerConnection) -> None:
        connection.respond(ApiVersionsResponse())

    async def _metadata(self, request: MetadataRequest, connection: ServerConnection) -> None:
        connection.respond(self._metadata_cache.metadata(request.topics))

    # -- control -----------------------------------------------------------------------------------

    def _is_stale(self, request: str, sender: int, sender_epoch: int, broker_epoch: int) -> bool:
        """Meant for an earlier incarnation of this broker (KIP-380); a greater epoch is
        accepted."""
        # -1: the controller is older than 2.2, or knows no epochs.
        if broker_epoch < 0 or broker_epoch >= self._broker_epoch():
            return False
        self._context.emit(
            events.ControlRequestRefused,
            request,
            sender,
            sender_epoch,
            Errors.STALE_BROKER_EPOCH.name,
        )
        return True

    async def _leader_and_isr(
        self, request: LeaderAndIsrRequest, connection: ServerConnection
    ) -> None:
        if self._is_stale(
            "LeaderAndIsr", request.controller_id, request.controller_epoch, request.broker_epoch
        ):
            connection.respond(LeaderAndIsrResponse(Errors.STALE_BROKER_EPOCH))
            return
        connection.respond(await self._replicas.become_leader_or_follower(request))

    async def _update_metadata(
        self, request: UpdateMetadataRequest, connection: ServerConnection
    ) -> None:
        if self._is_stale(
            "UpdateMetadata", request.controller_id, request.controller_epoch, request.broker_epoch
        ):
            connection.respond(UpdateMetadataResponse(Errors.STALE_BROKER_EPOCH))
            return
        try:
            await self._replicas.maybe_update_metadata_cache(request)
            await self._admin.metadata_changed(s.partition for s in request.states)
            await self._elections.metadata_changed(s.partition for s in request.states)
            error = Errors.NONE
        except KafkaError as failed:
            error = failed.error
        connection.respond(UpdateMetadataResponse(error))

    async def _stop_replica(
        self, request: StopReplicaRequest, connection: ServerConnection
    ) -> None:
        if self._is_stale(
            "StopReplica", request.controller_id, request.controller_epoch, request.broker_epoch
        ):
            connection.respond(StopReplicaResponse(Errors.STALE_BROKER_EPOCH))
            return
        connection.respond(await self._replicas.stop_replicas(request))

    async def _controlled_shutdown(
        self, request: ControlledShutdownRequest, connection: ServerConnection
    ) -> None:
        self._controller.controlled_shutdown(request, connection.respond)

    async def _alter_isr(self, request: AlterIsrRequest, connection: ServerConnection) -> None:
        """A version that does not know the request closes the connection, or has said so before it
        was sent: this answer stands for both (`controller_channel`)."""
        error = Errors.NOT_CONTROLLER
        if "AlterIsr" not in self._context.profile.request_versions:
            error = Errors.UNSUPPORTED_VERSION
        elif self._controller.is_active:
            self._controller.alter_isrs(request, connection.respond)
            return
        partitions = tuple(p.partition for p in request.partitions)
        self._context.emit(events.AlterIsrRefused, request.broker, partitions, error.name)
        connection.respond(AlterIsrResponse(error))

    # -- administration ----------------------------------------------------------------------------

    async def _create_topics(
        self, request: CreateTopicsRequest, connection: ServerConnection
    ) -> None:
        if not self._controller.is_active:
            connection.respond(AdminResponse(Errors.NOT_CONTROLLER))
            return
        await self._admin.create_topic(request, connection.respond)

    async def _create_partitions(
        self, request: CreatePartitionsRequest, connection: ServerConnection
    ) -> None:
        if not self._controller.is_active:
            connection.respond(AdminResponse(Errors.NOT_CONTROLLER))
        elif self._controller.is_topic_queued_for_deletion(request.topic):
            connection.respond(AdminResponse(Errors.INVALID_TOPIC_EXCEPTION))
        else:
            await self._admin.create_partitions(request, connection.respond)

    async def _delete_topics(
        self, request: DeleteTopicsRequest, connection: ServerConnection
    ) -> None:
        if self._controller.is_active:
            await self._admin.delete_topic(request, connection.respond)
        else:
            connection.respond(AdminResponse(Errors.NOT_CONTROLLER))

    async def _elect_leaders(
        self, request: ElectLeadersRequest, connection: ServerConnection
    ) -> None:
        """For all partitions: those that needed none are not spoken of."""
        everywhere = request.partitions is None
        partitions = self._metadata_cache.partitions()
        deadline_ms = self._context.now_ms() + request.timeout_ms

        def respond(results: dict[TopicPartition, Errors]) -> None:
            unneeded = Errors.ELECTION_NOT_NEEDED if everywhere else None
            told = {p: e for p, e in results.items() if e is not unneeded}
            error = _first_error(told.values())
            connection.respond(AdminResponse(error, partitions=tuple(told.items())))

        async def done(results: ElectionResults) -> None:
            await self._elections.answer(results, deadline_ms, respond)

        wanted = partitions if request.partitions is None else request.partitions
        self._controller.elect_leaders(wanted, request.election_type, done)

    async def _alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest, connection: ServerConnection
    ) -> None:
        def done(results: dict[TopicPartition, Errors]) -> None:
            error = _first_error(results.values())
            connection.respond(AdminResponse(error, partitions=tuple(results.items())))

        self._controller.alter_partition_reassignments(dict(request.targets), done)

    async def _list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest, connection: ServerConnection
    ) -> None:
        def done(found: tuple[Reassignment, ...] | Errors) -> None:
            if isinstance(found, Errors):
                connection.respond(AdminResponse(found))
            else:
                connection.respond(AdminResponse(Errors.NONE, reassignments=found))

        self._controller.list_partition_reassignments(request.partitions, done)

    async def _alter_configs(
        self, request: AlterConfigsRequest, connection: ServerConnection
    ) -> None:
        connection.respond(await self._admin.alter_configs(request))

    async def _describe_configs(
        self, request: DescribeConfigsRequest, connection: ServerConnection
    ) -> None:
        connection.respond(await self._admin.describe_configs(request))


def _first_error(errors: Iterable[Errors]) -> Errors:
    return next((e for e in errors if e is not Errors.NONE), Errors.NONE)


def _unknown_server_error(request: object) -> object:
    """The answer to a request that failed as a whole."""
    error = Errors.UNKNOWN_SERVER_ERROR
    match request:
        case FetchRequest():
            return FetchResponse(error, 0, ())
        case ProduceRequest(partitions=partitions):
            return ProduceResponse(
                tuple(ProducedPartition(p.partition, error, -1) for p in partitions)
            )
        case LeaderAndIsrRequest():
            return LeaderAndIsrResponse(error)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error)
        case StopReplicaRequest():
            return StopReplicaResponse(error)
    return AdminResponse(error)
