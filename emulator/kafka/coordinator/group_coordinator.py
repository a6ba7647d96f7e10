"""GroupCoordinator: members join, get their assignment, send heartbeats, commit offsets, leave.

Owns the order of a rebalance and its timers: how long members may take to join, and when a member
counts as failed. `group_metadata` has a group's state, `group_metadata_manager` its records.
Source: coordinator/group/GroupCoordinator.scala, DelayedJoin.scala, DelayedHeartbeat.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.purgatory import DelayedOperation, Purgatory
from emulator.kafka.coordinator.group_metadata import (
    GroupMetadata,
    GroupState,
    MemberMetadata,
    OnJoined,
    OnSynced,
)
from emulator.kafka.coordinator.group_metadata_manager import GroupMetadataManager
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.protocol.groups import (
    CommittedOffset,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    GroupRequest,
    GroupResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from emulator.kafka.protocol.transport import ServerConnection
from emulator.trace.values import TopicPartition

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member's join may wait: it has no session yet."""

NO_OFFSET = CommittedOffset(-1)

DEAD, EMPTY, STABLE = GroupState.DEAD, GroupState.EMPTY, GroupState.STABLE
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE


class GroupCoordinator:
    """The coordinator of the groups whose partition of `__consumer_offsets` this broker leads."""

    def __init__(
        self,
        context: BrokerContext,
        manager: GroupMetadataManager,
        metadata_cache: MetadataCache,
        draw: Callable[[int], int],
    ) -> None:
        """`draw(n)` returns a number below n, for member ids."""
        self._context, self._manager, self._draw = context, manager, draw
        self._metadata_cache = metadata_cache
        self._is_active = True

    @cached_property
    def _joins(self) -> Purgatory:
        """Created for the first group: a broker without groups has no such threads here."""
        return Purgatory(self._context, "Rebalance")

    @cached_property
    def _heartbeats(self) -> Purgatory:
        return Purgatory(self._context, "Heartbeat")

    def partition_for(self, group: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return self._manager.partition_for(group)

    def on_election(self, partition: int) -> None:
        """This broker leads a partition of `__consumer_offsets` (handleGroupImmigration)."""
        self._manager.schedule_load(partition, self._on_group_loaded)

    def on_resignation(self, partition: int) -> None:
        """Another broker leads it (handleGroupEmigration)."""
        self._manager.schedule_unload(partition, self._on_group_unloaded)

    def shutdown(self) -> None:
        """Members have to look for another coordinator."""
        # Requests still get a response: COORDINATOR_NOT_AVAILABLE.
        self._is_active = False

    async def handle(self, request: GroupRequest, connection: ServerConnection) -> None:
        """Process a request of a member or an administrator; some responses come later."""
        respond: Callable[[GroupResponse], None] = connection.respond
        match request:
            case JoinGroupRequest():
                await self._join_group(request, connection)
            case SyncGroupRequest():
                await self._sync_group(request, respond)
            case HeartbeatRequest():
                respond(HeartbeatResponse(await self._heartbeat(request)))
            case LeaveGroupRequest():
                respond(await self._leave_group(request))
            case OffsetCommitRequest():
                await self._commit_offsets(request, respond)
            case OffsetFetchRequest():
                respond(self._fetch_offsets(request))
            case ListGroupsRequest():
                respond(self._list_groups(request))
            case DescribeGroupsRequest():
                respond(self._describe_group(request))
            case DeleteGroupsRequest():
                respond(DeleteGroupsResponse(await self._delete_group(request.group)))

    def _group_error(self, group: str, *, may_be_empty: bool = False) -> Errors:
        """The error if this broker cannot coordinate the group (validateGroupStatus). An empty name
        is valid only for offsets."""
        if not group and not may_be_empty:
            return Errors.INVALID_GROUP_ID
        if not self._is_active:
            return Errors.COORDINATOR_NOT_AVAILABLE
        if self._manager.is_group_loading(group):
            return Errors.COORDINATOR_LOAD_IN_PROGRESS
        if not self._manager.is_group_local(group):
            return Errors.NOT_COORDINATOR
        return Errors.NONE

    # -- joining -----------------------------------------------------------------------------------

    async def _join_group(self, request: JoinGroupRequest, connection: ServerConnection) -> None:
        config, member = self._context.config, request.member
        respond: OnJoined = connection.respond

        def refuse(error: Errors, member: str = member) -> None:
            respond(JoinGroupResponse(error, member=member))

        error = self._group_error(request.group)
        if error is not Errors.NONE:
            refuse(error)
            return
        least, most = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not least <= request.session_timeout_ms <= most:
            refuse(Errors.INVALID_SESSION_TIMEOUT)
            return
        group = self._manager.groups.get(request.group)
        if group is None:
            # A member with an id belonged to a group that no longer exists.
            if member:
                refuse(Errors.UNKNOWN_MEMBER_ID)
                return
            group = self._manager.add_group(request.group)
        async with group.lock:
            if not self._accepts_member(group, member):
                group.remove(member)
                refuse(Errors.GROUP_MAX_SIZE_REACHED, "")
            elif group.is_in(DEAD):
                # Unloaded or deleted while this request waited: the member has to find its
                # coordinator again.
                refuse(Errors.COORDINATOR_NOT_AVAILABLE)
            elif not group.supports_protocols(
                request.protocol_type, [name for name, _ in request.protocols]
            ):
                refuse(Errors.INCONSISTENT_GROUP_PROTOCOL)
            elif not member:
                await self._join_unknown(group, request, connection)
            else:
                await self._join_known(group, request, connection)
            # This member may be the last one that the rebalance waits for.
            if group.is_in(PREPARING):
                await self._joins.check_and_complete(group.group)

    def _accepts_member(self, group: GroupMetadata, member: str) -> bool:
        """group.max.size, counted among joined members (acceptJoiningMember)."""
        most, known = self._context.config.group_max_size, group.members.get(member)
        if group.is_in(EMPTY, DEAD):
            return True
        if group.is_in(PREPARING):
            # First come, first served: members of the previous generation have no priority.
            waits = known is not None and known.on_joined is not None
            return waits or len(group.awaiting_join) < most
        return known is not None or len(group.members) < most

    async def _join_unknown(
        self, group: GroupMetadata, request: JoinGroupRequest, connection: ServerConnection
    ) -> None:
        """A member without an id (doUnknownJoinGroup)."""
        # Kafka uses a random UUID; here it is drawn from the run's seed, so that the same seed
        # gives the same ids.
        drawn = "".join(f"{self._draw(1 << 32):08x}" for _ in range(4))
        uuid = "-".join((drawn[:8], drawn[8:12], drawn[12:16], drawn[16:20], drawn[20:]))
        instance = request.instance
        # The id shows the client, or the instance, to readers of a broker's log (generateMemberId).
        new = f"{connection.client if instance is None else instance}-{uuid}"
        if instance is not None and instance in group.static_members:
            await self._rejoin_static(group, new, request, connection.respond)
        elif instance is None and request.requires_known_member_id:
            # The member has to join again with this id. If it does not, it is removed sooner than a
            # member would be.
            group.pending_members[new] = None
            connection.respond(JoinGroupResponse(Errors.MEMBER_ID_REQUIRED, member=new))
            pending = DelayedHeartbeat(self, group, new, request.session_timeout_ms, pending=True)
            await self._heartbeats.try_complete_else_watch(pending, [(group.group, new)])
        else:
            await self._add_member_and_rebalance(group, new, request, connection)

    async def _rejoin_static(
        self, group: GroupMetadata, new: str, request: JoinGroupRequest, respond: OnJoined
    ) -> None:
        """A static member has restarted (updateStaticMemberAndRebalance)."""
        assert request.instance is not None
        old, leader = group.static_members[request.instance], group.leader
        member = group.replace_static_member(old, new)
        await self._schedule_heartbeat(group, member)
        member.protocols, member.on_joined = request.protocols, respond
        if group.is_in(STABLE) and group.protocol == group.select_protocol():
            # No other member joins again: the assignment stays. A restarted leader gets a response
            # with its old id as the leader's, so that it does not assign.
            assignments = {m.member: m.assignment for m in group.members.values()}

            def done(error: Errors) -> None:
                if error is not Errors.NONE:
                    self._answer_join(member, JoinGroupResponse(error, member=new))
                else:
                    self._answer_join(member, self._joined(group, member, leader or ""))

            await self._manager.store_group(group, assignments, done)
        elif group.is_in(STABLE, COMPLETING):
            await self._maybe_prepare_rebalance(group)

    async def _join_known(
        self, group: GroupMetadata, request: JoinGroupRequest, connection: ServerConnection
    ) -> None:
        """A member with an id (doJoinGroup)."""
        respond: OnJoined = connection.respond
        if request.member in group.pending_members:
            await self._add_member_and_rebalance(group, request.member, request, connection)
            return
        if group.is_static_member_fenced(request.member, request.instance):
            respond(JoinGroupResponse(Errors.FENCED_INSTANCE_ID, member=request.member))
            return
        member = group.members.get(request.member)
        lost = request.instance is not None and request.instance not in group.static_members
        if member is None or lost or group.is_in(EMPTY):
            respond(JoinGroupResponse(Errors.UNKNOWN_MEMBER_ID, member=request.member))
            return
        unchanged = member.protocols == request.protocols
        # A repeated request whose first response was lost, or an unchanged member that is not the
        # leader. A leader that joins again wants a new assignment, because topics have changed.
        if (group.is_in(COMPLETING) and unchanged) or (
            group.is_in(STABLE) and unchanged and group.leader != request.member
        ):
            respond(self._joined(group, member))
            return
        member.protocols, member.on_joined = request.protocols, respond
        await self._maybe_prepare_rebalance(group)

    async def _add_member_and_rebalance(
        self,
        group: GroupMetadata,
        name: str,
        request: JoinGroupRequest,
        connection: ServerConnection,
    ) -> None:
        member = MemberMetadata(
            name,
            request.instance,
            connection.client,
            connection.host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
        )
        member.is_new = True
        # The first rebalance of a group is extended for other members that start now.
        if group.is_in(PREPARING) and group.generation == 0:
            group.new_member_added = True
        group.add(member, connection.respond)
        await self._schedule_heartbeat(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        if member.instance is not None:
            group.static_members[member.instance] = name
        else:
            group.pending_members.pop(name, None)
        await self._maybe_prepare_rebalance(group)

    def _joined(
        self, group: GroupMetadata, member: MemberMetadata, leader: str | None = None
    ) -> JoinGroupResponse:
        """The response for this generation; only the leader's lists the members."""
        if leader is None:
            leader = group.leader or ""
        return JoinGroupResponse(
            Errors.NONE,
            group.generation,
            group.protocol_type,
            group.protocol,
            leader,
            member.member,
            group.joined_members() if leader == member.member else (),
        )

    @staticmethod
    def _answer_join(member: MemberMetadata, response: JoinGroupResponse) -> None:
        if member.on_joined is not None:
            respond, member.on_joined = member.on_joined, None
            respond(response)

    # -- rebalancing -------------------------------------------------------------------------------

    async def _maybe_prepare_rebalance(self, group: GroupMetadata) -> None:
        if group.can_rebalance:
            await self._prepare_rebalance(group)

    async def _prepare_rebalance(self, group: GroupMetadata) -> None:
        """All members have to join again, including those that wait for an assignment."""
        if group.is_in(COMPLETING):
            await self._propagate_assignment(group, {}, Errors.REBALANCE_IN_PROGRESS)
        if group.is_in(EMPTY):
            delay_ms = self._context.config.group_initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            join: DelayedJoin = InitialDelayedJoin(self, group, delay_ms, left_ms)
        else:
            join = DelayedJoin(self, group, group.rebalance_timeout_ms)
        group.transition_to(PREPARING)
        await self._joins.try_complete_else_watch(join, [group.group])

    async def postpone_join(self, group: GroupMetadata, delay_ms: int, left_ms: int) -> None:
        """More members have joined during the first rebalance: extend it."""
        join = InitialDelayedJoin(self, group, delay_ms, left_ms)
        await self._joins.try_complete_else_watch(join, [group.group])

    async def complete_join(self, group: GroupMetadata) -> None:
        """All members have joined, or time is up: start a new generation (onCompleteJoin)."""
        for member in list(group.members.values()):
            # A static member keeps its place until its session expires: it may be restarting
            # (KIP-345).
            if member.on_joined is None and member.instance is None:
                await self._stop_heartbeat(group, member)
                group.remove(member.member)
        if group.is_in(DEAD):
            return
        if group.members and not group.maybe_elect_new_joined_leader():
            # Only static members, none of which has joined: wait until their sessions expire.
            join = DelayedJoin(self, group, group.rebalance_timeout_ms)
            await self._joins.try_complete_else_watch(join, [group.group])
            return
        group.init_next_generation()
        if group.is_in(EMPTY):

            def stored(error: Errors) -> None:
                if error is not Errors.NONE:
                    # The previous generation may be loaded by the next coordinator; its members
                    # then time out there.
                    what = f"storing the empty group {group.group}"
                    self._context.failed(what, KafkaError(error))

            await self._manager.store_group(group, {}, stored)
            return
        for member in list(group.members.values()):
            self._answer_join(member, self._joined(group, member))
            await self._schedule_heartbeat(group, member)
            member.is_new = False

    async def _sync_group(self, request: SyncGroupRequest, respond: OnSynced) -> None:
        """A member requests its assignment; the leader's request has all assignments."""
        error = self._group_error(request.group)
        if error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance is lost with the old coordinator: the group joins again.
            error = Errors.REBALANCE_IN_PROGRESS
        group = self._manager.groups.get(request.group)
        if error is Errors.NONE and group is None:
            error = Errors.UNKNOWN_MEMBER_ID
        if error is not Errors.NONE or group is None:
            respond(SyncGroupResponse(error))
            return
        async with group.lock:
            error = self._member_error(group, request)
            if error is Errors.NONE and self._is_other_protocol(group, request):
                error = Errors.INCONSISTENT_GROUP_PROTOCOL
            elif error is Errors.NONE and group.is_in(PREPARING):
                error = Errors.REBALANCE_IN_PROGRESS
            if error is not Errors.NONE:
                respond(SyncGroupResponse(error))
                return
            member = group.members[request.member]
            # It joined again without a rebalance, or the first response was lost.
            if group.is_in(STABLE):
                respond(self._synced(group, member))
                await self._schedule_heartbeat(group, member)
                return
            member.on_synced = respond
            if group.leader == request.member:
                await self._store_assignment(group, request)

    async def _store_assignment(self, group: GroupMetadata, request: SyncGroupRequest) -> None:
        assignments = dict(request.assignments)

        async def stored(error: Errors) -> None:
            async with group.lock:
                # A member may have joined during the write.
                if not group.is_in(COMPLETING) or group.generation != request.generation:
                    return
                if error is Errors.NONE:
                    await self._propagate_assignment(group, assignments, error)
                    group.transition_to(STABLE)
                else:
                    await self._propagate_assignment(group, {}, error)
                    await self._maybe_prepare_rebalance(group)

        def done(error: Errors) -> None:
            # Kafka calls this in the thread that completed the write. Here it must not wait for a
            # thread that holds the group's lock and waits for the log.
            self._context.spawn(f"group {group.group}", stored(error))

        await self._manager.store_group(group, assignments, done)

    async def _propagate_assignment(
        self, group: GroupMetadata, assignments: dict[str, bytes], error: Errors
    ) -> None:
        """Send the assignments to waiting members, and restart their sessions."""
        for member in list(group.members.values()):
            member.assignment = assignments.get(member.member, b"")
            if member.on_synced is not None:
                respond, member.on_synced = member.on_synced, None
                respond(self._synced(group, member) if not error else SyncGroupResponse(error))
                await self._schedule_heartbeat(group, member)

    @staticmethod
    def _synced(group: GroupMetadata, member: MemberMetadata) -> SyncGroupResponse:
        kind, name = group.protocol_type, group.protocol
        return SyncGroupResponse(Errors.NONE, kind, name, member.assignment)

    @staticmethod
    def _is_other_protocol(group: GroupMetadata, request: SyncGroupRequest) -> bool:
        """From version 5 on a member sends the protocol that it assumes."""
        return (request.protocol_type not in (None, group.protocol_type)) or (
            request.protocol not in (None, group.protocol)
        )

    @staticmethod
    def _member_error(group: GroupMetadata, request: SyncGroupRequest | HeartbeatRequest) -> Errors:
        if group.is_in(DEAD):
            return Errors.COORDINATOR_NOT_AVAILABLE
        if group.is_static_member_fenced(request.member, request.instance):
            return Errors.FENCED_INSTANCE_ID
        if request.member not in group.members or group.is_in(EMPTY):
            return Errors.UNKNOWN_MEMBER_ID
        if request.generation != group.generation:
            return Errors.ILLEGAL_GENERATION
        return Errors.NONE

    # -- staying and leaving -----------------------------------------------------------------------

    async def _heartbeat(self, request: HeartbeatRequest) -> Errors:
        error = self._group_error(request.group)
        if error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
            return Errors.NONE  # its session is not known yet
        if error is not Errors.NONE:
            return error
        group = self._manager.groups.get(request.group)
        if group is None:
            return Errors.UNKNOWN_MEMBER_ID
        async with group.lock:
            error = self._member_error(group, request)
            if error is Errors.NONE:
                await self._schedule_heartbeat(group, group.members[request.member])
                if group.is_in(PREPARING):
                    error = Errors.REBALANCE_IN_PROGRESS
            return error

    async def _leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        error = self._group_error(request.group)
        if error is not Errors.NONE:
            return LeaveGroupResponse(error)
        group = self._manager.groups.get(request.group)
        if group is None:
            unknown = tuple((member, Errors.UNKNOWN_MEMBER_ID) for member in request.members)
            return LeaveGroupResponse(Errors.NONE, unknown)
        async with group.lock:
            if group.is_in(DEAD):
                return LeaveGroupResponse(Errors.COORDINATOR_NOT_AVAILABLE)
            results = [(member, await self._leave(group, member)) for member in request.members]
            return LeaveGroupResponse(Errors.NONE, tuple(results))

    async def _leave(self, group: GroupMetadata, leaving: MemberIdentity) -> Errors:
        name, instance = leaving
        if name and group.is_static_member_fenced(name, instance):
            return Errors.FENCED_INSTANCE_ID
        if name in group.pending_members:
            await self.remove_pending_member(group, name)
            await self._heartbeats.check_and_complete((group.group, name))
            return Errors.NONE
        # An administrator can remove a static member by its instance id, without its member id.
        known = group.static_members.get(instance, name) if instance is not None else name
        member = group.members.get(known)
        if member is None:
            return Errors.UNKNOWN_MEMBER_ID
        await self._stop_heartbeat(group, member)
        await self.remove_member(group, member)
        return Errors.NONE

    async def remove_member(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """A member has left or its session has expired: rebalance (removeMemberAndUpdateGroup)."""
        # A new member may time out during its join: it has to try again.
        self._answer_join(member, JoinGroupResponse(Errors.UNKNOWN_MEMBER_ID))
        group.remove(member.member)
        if group.is_in(STABLE, COMPLETING):
            await self._maybe_prepare_rebalance(group)
        elif group.is_in(PREPARING):
            await self._joins.check_and_complete(group.group)

    async def remove_pending_member(self, group: GroupMetadata, member: str) -> None:
        """The member got an id and has not joined with it."""
        group.pending_members.pop(member, None)
        if group.is_in(PREPARING):
            await self._joins.check_and_complete(group.group)

    async def _schedule_heartbeat(
        self, group: GroupMetadata, member: MemberMetadata, timeout_ms: int | None = None
    ) -> None:
        """The member is alive: restart its session (completeAndScheduleNextHeartbeatExpiration)."""
        key = (group.group, member.member)
        member.heartbeat_satisfied = True
        await self._heartbeats.check_and_complete(key)
        # The flag completes only the previous deadline: the next one must wait for a heartbeat.
        member.heartbeat_satisfied = False
        # A member whose first join waits sends no heartbeats and may have died: it has a separate,
        # longer timeout (KAFKA-7610).
        delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        expected = DelayedHeartbeat(self, group, member.member, delay_ms)
        await self._heartbeats.try_complete_else_watch(expected, [key])

    async def _stop_heartbeat(self, group: GroupMetadata, member: MemberMetadata) -> None:
        # This completes the delayed heartbeat, which then does not expire.
        member.is_leaving = True
        await self._heartbeats.check_and_complete((group.group, member.member))

    # -- offsets -----------------------------------------------------------------------------------

    async def _commit_offsets(
        self, request: OffsetCommitRequest, respond: Callable[[OffsetCommitResponse], None]
    ) -> None:
        def answer(error: Errors) -> None:
            respond(OffsetCommitResponse(tuple((p, error) for p, _ in request.offsets)))

        error = self._group_error(request.group, may_be_empty=True)
        if error is not Errors.NONE:
            answer(error)
            return
        group = self._manager.groups.get(request.group)
        if group is None:
            # The request names a generation of a group that no longer exists.
            if request.generation >= 0:
                answer(Errors.ILLEGAL_GENERATION)
                return
            # A consumer that only stores offsets: its first commit creates the group.
            group = self._manager.add_group(request.group)
        async with group.lock:
            error = self._commit_error(group, request)
            if error is not Errors.NONE:
                answer(error)
                return
            member = group.members.get(request.member)
            if member is not None:
                await self._schedule_heartbeat(group, member)
            # Partitions unknown to this broker are rejected one by one (KafkaApis.scala@2.6.3
            # handleOffsetCommitRequest).
            unknown = {
                p: Errors.UNKNOWN_TOPIC_OR_PARTITION
                for p, _ in request.offsets
                if not self._metadata_cache.contains(p)
            }

            def stored(results: tuple[tuple[TopicPartition, Errors], ...]) -> None:
                errors = {**unknown, **dict(results)}
                respond(OffsetCommitResponse(tuple((p, errors[p]) for p, _ in request.offsets)))

            known = [(p, o) for p, o in request.offsets if p not in unknown]
            await self._manager.store_offsets(group, known, stored)

    @staticmethod
    def _commit_error(group: GroupMetadata, request: OffsetCommitRequest) -> Errors:
        """doCommitOffsets. Commits are accepted while members join again: it is the last chance
        before their partitions are reassigned."""
        if group.is_in(DEAD):
            return Errors.COORDINATOR_NOT_AVAILABLE
        if group.is_static_member_fenced(request.member, request.instance):
            return Errors.FENCED_INSTANCE_ID
        # A consumer without a group, or an administrator: there are no members whose offsets it
        # could overwrite.
        if request.generation < 0 and group.is_in(EMPTY):
            return Errors.NONE
        if request.member not in group.members:
            return Errors.UNKNOWN_MEMBER_ID
        if request.generation != group.generation:
            return Errors.ILLEGAL_GENERATION
        return Errors.REBALANCE_IN_PROGRESS if group.is_in(COMPLETING) else Errors.NONE

    def _fetch_offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        error = self._group_error(request.group, may_be_empty=True)
        if error is not Errors.NONE:
            return OffsetFetchResponse(error)
        group = self._manager.groups.get(request.group)
        offsets = {} if group is None or group.is_in(DEAD) else group.offsets
        partitions = tuple(offsets) if request.partitions is None else request.partitions
        return OffsetFetchResponse(
            Errors.NONE, tuple((p, offsets.get(p, NO_OFFSET)) for p in partitions)
        )

    # -- administration ----------------------------------------------------------------------------

    def _list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        if not self._is_active:
            return ListGroupsResponse(Errors.COORDINATOR_NOT_AVAILABLE)
        loading = self._manager.is_loading
        states = {state.lower() for state in request.states}
        return ListGroupsResponse(
            Errors.COORDINATOR_LOAD_IN_PROGRESS if loading else Errors.NONE,
            tuple(
                ListedGroup(g.group, g.protocol_type or "", g.state.value)
                for g in self._manager.groups.values()
                if not states or g.state.value.lower() in states
            ),
        )

    def _describe_group(self, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        error = self._group_error(request.group, may_be_empty=True)
        if error is not Errors.NONE:
            return DescribeGroupsResponse(error)
        group = self._manager.groups.get(request.group)
        if group is None:
            # Kafka's response for an unknown group (DeadGroup) has no error.
            return DescribeGroupsResponse(Errors.NONE, DEAD.value)
        return DescribeGroupsResponse(
            Errors.NONE,
            group.state.value,
            group.protocol_type or "",
            (group.protocol or "") if group.is_in(STABLE) else "",
            group.described_members(),
        )

    async def _delete_group(self, name: str) -> Errors:
        """handleDeleteGroups: only a group without members can be deleted."""
        error = self._group_error(name, may_be_empty=True)
        if error is not Errors.NONE:
            return error
        group = self._manager.groups.get(name)
        if group is None:
            return Errors.GROUP_ID_NOT_FOUND
        async with group.lock:
            if group.is_in(DEAD):
                return Errors.GROUP_ID_NOT_FOUND
            if not group.is_in(EMPTY):
                return Errors.NON_EMPTY_GROUP
            group.transition_to(DEAD)
        await self._manager.cleanup_group_metadata([group], GroupMetadata.remove_all_offsets)
        return Errors.NONE

    async def handle_deleted_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Committed offsets of deleted partitions go, of groups with members too: in a topic of the
        same name they would point anywhere (handleDeletedPartitions)."""
        await self._manager.cleanup_group_metadata(
            list(self._manager.groups.values()), lambda group: group.remove_offsets(partitions)
        )

    # -- leadership --------------------------------------------------------------------------------

    async def _on_group_loaded(self, group: GroupMetadata) -> None:
        """Each member gets a full session timeout for its next heartbeat."""
        async with group.lock:
            for member in list(group.members.values()):
                await self._schedule_heartbeat(group, member)

    async def _on_group_unloaded(self, group: GroupMetadata) -> None:
        """Waiting members are sent to the new coordinator."""
        async with group.lock:
            before = group.state
            group.transition_to(DEAD)
            for member in list(group.members.values()):
                self._answer_join(
                    member, JoinGroupResponse(Errors.NOT_COORDINATOR, member=member.member)
                )
                if member.on_synced is not None:
                    respond, member.on_synced = member.on_synced, None
                    respond(SyncGroupResponse(Errors.NOT_COORDINATOR))
                await self._stop_heartbeat(group, member)
            # The waiting rebalance ends now: it finds the group dead.
            if before is PREPARING:
                await self._joins.check_and_complete(group.group)


class DelayedJoin(DelayedOperation):
    """A rebalance that waits until all members have joined again, or for the longest rebalance
    timeout."""

    def __init__(self, coordinator: GroupCoordinator, group: GroupMetadata, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._coordinator, self._group = coordinator, group

    async def try_complete(self) -> bool:
        async with self._group.lock:
            if self._group.is_in(DEAD) or self._group.has_all_members_joined:
                return await self.force_complete()
            return False

    async def on_complete(self) -> None:
        async with self._group.lock:
            await self._coordinator.complete_join(self._group)


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of an empty group waits group.initial.rebalance.delay.ms. It waits again
    if members join meanwhile, up to the rebalance timeout: consumers that start together cause one
    rebalance.
    """

    def __init__(
        self, coordinator: GroupCoordinator, group: GroupMetadata, delay_ms: int, left_ms: int
    ) -> None:
        super().__init__(coordinator, group, delay_ms)
        self._left_ms = left_ms

    async def try_complete(self) -> bool:
        # Only time ends it, no matter how many members have joined.
        return False

    async def on_complete(self) -> None:
        async with self._group.lock:
            if self._group.new_member_added and self._left_ms:
                self._group.new_member_added = False
                delay_ms = min(self.delay_ms, self._left_ms)
                left_ms = max(self._left_ms - self.delay_ms, 0)
                await self._coordinator.postpone_join(self._group, delay_ms, left_ms)
            else:
                await super().on_complete()


class DelayedHeartbeat(DelayedOperation):
    """The deadline for a member's next heartbeat. `pending`: the deadline for a join with the
    assigned id."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        group: GroupMetadata,
        member: str,
        timeout_ms: int,
        *,
        pending: bool = False,
    ) -> None:
        super().__init__(timeout_ms)
        self._coordinator, self._group, self._member = coordinator, group, member
        self._pending = pending

    def _is_satisfied(self) -> bool:
        group, member = self._group, self._group.members.get(self._member)
        if group.is_in(DEAD):
            return True
        if self._pending:
            return self._member not in group.pending_members
        return member is None or member.is_leaving or member.has_satisfied_heartbeat()

    async def try_complete(self) -> bool:
        async with self._group.lock:
            return await self.force_complete() if self._is_satisfied() else False

    async def on_complete(self) -> None: ...

    async def on_expiration(self) -> None:
        async with self._group.lock:
            if self._group.is_in(DEAD):
                return
            if self._pending:
                await self._coordinator.remove_pending_member(self._group, self._member)
            # A heartbeat may have arrived during the wait for the lock.
            elif not self._is_satisfied():
                await self._coordinator.remove_member(
                    self._group, self._group.members[self._member]
                )
