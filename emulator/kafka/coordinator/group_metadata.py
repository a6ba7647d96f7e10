"""One consumer group at its coordinator: members, state, generation, offsets.

Plain rules; the coordinator holds the group's lock. No log, no timer, no request. Where Kafka
iterates over a hash map of members, members here are in the order in which they joined. Sources:
coordinator/group/GroupMetadata.scala, MemberMetadata.scala@2.6.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum

from emulator.kafka.coordinator.group_records import StoredGroup, StoredMember
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.groups import (
    CommittedOffset,
    DescribedMember,
    JoinedMember,
    JoinGroupResponse,
    SyncGroupResponse,
)
from emulator.kernel.scheduler import Kernel
from emulator.kernel.sync import Monitor
from emulator.trace.values import TopicPartition

OnJoined = Callable[[JoinGroupResponse], None]
OnSynced = Callable[[SyncGroupResponse], None]


class GroupState(Enum):
    """PREPARING_REBALANCE waits for members to join, COMPLETING_REBALANCE for the leader's
    assignment; a DEAD group was unloaded or deleted."""

    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"


VALID_PREVIOUS_STATES = {
    GroupState.PREPARING_REBALANCE: {
        GroupState.STABLE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.DEAD: set(GroupState),
}


class MemberMetadata:
    """One member: the data of its JoinGroup, its assignment, and the callbacks for its waiting
    requests."""

    def __init__(
        self,
        member: str,
        instance: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: tuple[tuple[str, bytes], ...],
    ) -> None:
        self.member, self.instance = member, instance
        self.client_id, self.client_host = client_id, client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type, self.protocols = protocol_type, protocols
        # From the leader's SyncGroup, or read from the log.
        self.assignment = b""
        self.on_joined: OnJoined | None = None
        self.on_synced: OnSynced | None = None
        self.is_leaving = self.is_new = self.heartbeat_satisfied = False

    def has_satisfied_heartbeat(self) -> bool:
        """A member whose request waits here counts as alive: its socket is muted, so it cannot send
        heartbeats. A new member may have died during its first join (hasSatisfiedHeartbeat)."""
        if self.is_new:
            return self.heartbeat_satisfied
        return self.on_joined is not None or self.on_synced is not None or self.heartbeat_satisfied

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for a protocol."""
        return dict(self.protocols).get(protocol or "", b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The member's preferred protocol among those that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)


class GroupMetadata:
    """One group. `lock` is Kafka's group lock."""

    def __init__(self, kernel: Kernel, group: str, wall_ms: Callable[[], int]) -> None:
        """`wall_ms` is the clock of its records in the log."""
        self.group, self._wall_ms = group, wall_ms
        self.lock = Monitor(kernel, f"group {group}")
        self.state = GroupState.EMPTY
        self.current_state_timestamp_ms = -1
        """The time of the last change of state; -1 if the log did not have it (before 2.1)."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, MemberMetadata] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id (KIP-345)."""
        self.pending_members: dict[str, None] = {}
        """Ids assigned to members that have not joined with them yet (KIP-394)."""
        self.new_member_added = False
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        self.offset_bases: dict[TopicPartition, int] = {}
        """The position of each committed offset in the log; the latest counts."""
        self.pending_offset_commits: dict[TopicPartition, CommittedOffset] = {}
        """Commits that are written and not yet in the log of all in-sync replicas; the latest."""

    @classmethod
    def loaded(
        cls, kernel: Kernel, group: str, stored: StoredGroup, wall_ms: Callable[[], int]
    ) -> GroupMetadata:
        """The group as stored in its last generation (GroupMetadata.loadGroup)."""
        it = cls(kernel, group, wall_ms)
        # The log has only assigned generations: a rebalance in progress is lost with the old
        # coordinator and starts again with the members' next requests.
        it.state = GroupState.STABLE if stored.members else GroupState.EMPTY
        it.current_state_timestamp_ms = stored.timestamp_ms
        it.generation, it.protocol_type = stored.generation, stored.protocol_type or None
        it.protocol, it.leader = stored.protocol, stored.leader
        for m in stored.members:
            member = MemberMetadata(
                m.member,
                m.instance,
                m.client_id,
                m.client_host,
                m.rebalance_timeout_ms,
                m.session_timeout_ms,
                stored.protocol_type,
                # Only the chosen protocol is stored; the member sends the others when it joins
                # again.
                ((stored.protocol or "", m.subscription),),
            )
            member.assignment = m.assignment
            it.members[m.member] = member
            if m.instance is not None:
                it.static_members[m.instance] = m.member
        return it

    def stored(self, assignments: dict[str, bytes]) -> StoredGroup:
        """The record of this generation for the log."""
        members = tuple(
            StoredMember(
                m.member,
                m.instance,
                m.client_id,
                m.client_host,
                m.rebalance_timeout_ms,
                m.session_timeout_ms,
                m.metadata(self.protocol),
                assignments.get(m.member, b""),
            )
            for m in self.members.values()
        )
        return StoredGroup(
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            members,
            self.current_state_timestamp_ms,
        )

    # -- state -------------------------------------------------------------------------------------

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    @property
    def can_rebalance(self) -> bool:
        return self.state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def transition_to(self, state: GroupState) -> None:
        allowed = VALID_PREVIOUS_STATES[state]
        # Kafka throws IllegalStateException here: a bug, not a state of the group.
        assert self.state in allowed, f"group {self.group}: {self.state} to {state}"
        self.state, self.current_state_timestamp_ms = state, self._wall_ms()

    def init_next_generation(self) -> None:
        """All members that will join have joined: start the next generation
        (initNextGeneration)."""
        self.generation += 1
        if self.members:
            self.protocol = self.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE)
        else:
            # No members are left. The offsets stay, and so does the group.
            self.protocol = None
            self.transition_to(GroupState.EMPTY)

    # -- members -----------------------------------------------------------------------------------

    def add(self, member: MemberMetadata, on_joined: OnJoined) -> None:
        # The first member determines the protocol type until the group is empty again.
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member
        self.members[member.member] = member
        member.on_joined = on_joined

    def remove(self, member: str) -> None:
        """Remove a member; if it was the leader another member becomes leader."""
        gone = self.members.pop(member, None)
        if gone is not None and gone.instance is not None:
            self.static_members.pop(gone.instance, None)
        if self.leader == member:
            # The oldest remaining member; Kafka takes the first of a hash map, which may be any.
            self.leader = next(iter(self.members), None)

    def replace_static_member(self, old: str, new: str) -> MemberMetadata:
        """The instance has restarted and gets its old place under a new member id. A process that
        still waits under the old id is fenced (replaceGroupInstance)."""
        member = self.members.pop(old)
        if member.on_joined is not None:
            member.on_joined(JoinGroupResponse(Errors.FENCED_INSTANCE_ID, member=old))
        if member.on_synced is not None:
            member.on_synced(SyncGroupResponse(Errors.FENCED_INSTANCE_ID))
        member.on_joined = member.on_synced = None
        member.member = new
        self.members[new] = member
        if self.leader == old:
            self.leader = new
        assert member.instance is not None
        self.static_members[member.instance] = new
        return member

    def is_static_member_fenced(self, member: str, instance: str | None) -> bool:
        """Whether another process has this instance id now."""
        # An unknown instance is not fenced: the caller then finds the member unknown.
        return instance is not None and self.static_members.get(instance, member) != member

    @property
    def awaiting_join(self) -> list[MemberMetadata]:
        return [m for m in self.members.values() if m.on_joined is not None]

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.awaiting_join) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def maybe_elect_new_joined_leader(self) -> bool:
        """If a static leader has not joined again, another joined member becomes leader; False if
        none has joined (maybeElectNewJoinedLeader)."""
        if self.leader is None:
            return False
        if self.members[self.leader].on_joined is not None:
            return True
        joined = self.awaiting_join
        if not joined:
            return False
        self.leader = joined[0].member
        return True

    # -- protocols ---------------------------------------------------------------------------------

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols can join the group."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        if self.protocol_type != protocol_type:
            return False
        # Without members no protocol is missing: all of them support each.
        offered = set(names)
        return bool(self._candidates() & offered) if self.members else bool(offered)

    def _candidates(self) -> frozenset[str]:
        """The protocols that every member supports."""
        of_members = [frozenset(n for n, _ in m.protocols) for m in self.members.values()]
        return frozenset.intersection(*of_members) if of_members else frozenset()

    def select_protocol(self) -> str:
        """The protocol with the most votes."""
        candidates = self._candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    # -- what others are shown ---------------------------------------------------------------------

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """The members, for the leader's assignment."""
        return tuple(
            JoinedMember(m.member, m.instance, m.metadata(self.protocol))
            for m in self.members.values()
        )

    def described_members(self) -> tuple[DescribedMember, ...]:
        stable = self.state is GroupState.STABLE
        return tuple(
            DescribedMember(
                m.member,
                m.instance,
                m.client_id,
                m.client_host,
                m.metadata(self.protocol) if stable else b"",
                m.assignment if stable else b"",
            )
            for m in self.members.values()
        )

    # -- offsets -----------------------------------------------------------------------------------

    @property
    def has_offsets(self) -> bool:
        return bool(self.offsets or self.pending_offset_commits)

    def initialize_offset(
        self, partition: TopicPartition, committed: CommittedOffset, base_offset: int
    ) -> None:
        """The log has this commit (initializeOffsets)."""
        self.offsets[partition] = committed
        self.offset_bases[partition] = base_offset

    def prepare_offset_commit(
        self, offsets: Iterable[tuple[TopicPartition, CommittedOffset]]
    ) -> None:
        """These commits are written now: until that is done their partitions do not expire."""
        self.pending_offset_commits.update(offsets)

    def on_offset_committed(
        self, partition: TopicPartition, committed: CommittedOffset, base_offset: int
    ) -> None:
        """A commit was written. Two commits may complete in reverse order: the later one in the log
        counts. If the partition was deleted meanwhile, the commit is not pending any more and does
        not count (onOffsetCommitAppend)."""
        if partition in self.pending_offset_commits and base_offset > self.offset_bases.get(
            partition, -1
        ):
            self.initialize_offset(partition, committed, base_offset)
        self.end_pending_offset_commit(partition, committed)

    def end_pending_offset_commit(
        self, partition: TopicPartition, committed: CommittedOffset
    ) -> None:
        """The commit was written, or failed; a later one of the partition stays pending
        (failPendingOffsetWrite)."""
        if self.pending_offset_commits.get(partition) is committed:
            del self.pending_offset_commits[partition]

    def remove_all_offsets(self) -> list[TopicPartition]:
        """Remove all committed offsets, and return their partitions (removeAllOffsets)."""
        return self.remove_offsets(list(self.offsets))

    def remove_offsets(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Remove these partitions' offsets, also commits that are still being written; return the
        partitions that had one (removeOffsets)."""
        removed = []
        for partition in partitions:
            self.pending_offset_commits.pop(partition, None)
            if self.offsets.pop(partition, None) is not None:
                del self.offset_bases[partition]
                removed.append(partition)
        return removed

    def remove_expired_offsets(
        self, now_ms: int, retention_ms: int, *, with_group: bool
    ) -> list[TopicPartition]:
        """Remove expired offsets, and return their partitions (removeExpiredOffsets).

        `with_group`: the offsets of a group with members do not expire (KIP-211). Others expire
        by the time at which the group became empty, or by their commit if no member ever joined.
        """
        expired = [
            partition
            for partition, committed in self.offsets.items()
            # A commit that is being written is newer than what is here.
            if partition not in self.pending_offset_commits
            and (
                self._is_expired(committed, now_ms, retention_ms)
                if with_group
                else committed.expire_timestamp_ms < now_ms
            )
        ]
        return self.remove_offsets(expired)

    def _is_expired(self, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
        # A group that never had a protocol only stores offsets: its state says nothing of its use.
        if self.protocol_type is not None and not self.is_in(GroupState.EMPTY):
            return False
        if committed.expire_timestamp_ms >= 0:  # stored by an older version
            return now_ms >= committed.expire_timestamp_ms
        base_ms = self.current_state_timestamp_ms if self.protocol_type is not None else -1
        return now_ms - (base_ms if base_ms >= 0 else committed.commit_timestamp_ms) >= retention_ms
