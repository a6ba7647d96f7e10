"""One consumer group at its coordinator: members, state, generation, offsets.

Plain rules under the group's lock, which the coordinator takes; no log, no timer, no request. Where
Kafka iterates over a hash map of members, members come in the order in which they joined. Sources:
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
    assignment; a DEAD group has been unloaded or deleted."""

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
    """One member: what it joined with, its assignment, and the answers that it waits for."""

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
        # Given by the leader in SyncGroup, or read from the log.
        self.assignment = b""
        self.on_joined: OnJoined | None = None
        self.on_synced: OnSynced | None = None
        self.is_leaving = self.is_new = self.heartbeat_satisfied = False

    def has_satisfied_heartbeat(self) -> bool:
        """A member whose request waits here is alive: its socket is muted, so it cannot send
        heartbeats. A new one may have gone while its first join waits (hasSatisfiedHeartbeat)."""
        if self.is_new:
            return self.heartbeat_satisfied
        return self.on_joined is not None or self.on_synced is not None or self.heartbeat_satisfied

    def metadata(self, protocol: str | None) -> bytes:
        """What it joined with for a protocol."""
        return dict(self.protocols).get(protocol or "", b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """Its best protocol that all members have."""
        return next(name for name, _ in self.protocols if name in candidates)


class GroupMetadata:
    """One group. `lock` is Kafka's group lock."""

    def __init__(self, kernel: Kernel, group: str) -> None:
        self.group = group
        self.lock = Monitor(kernel, f"group {group}")
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, MemberMetadata] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id (KIP-345)."""
        self.pending_members: dict[str, None] = {}
        """Ids that were given to members that have not joined with them yet (KIP-394)."""
        self.new_member_added = False
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        self.offset_bases: dict[TopicPartition, int] = {}
        """Where in the log each committed offset stands: the newest wins."""

    @classmethod
    def loaded(cls, kernel: Kernel, group: str, stored: StoredGroup) -> GroupMetadata:
        """As its last generation is stored (GroupMetadata.loadGroup)."""
        it = cls(kernel, group)
        # The log has generations only once they are assigned: a rebalance that was under way is
        # lost with the old coordinator, and begins again when its members ask.
        it.state = GroupState.STABLE if stored.members else GroupState.EMPTY
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
                # Only the chosen protocol is stored; the others come back when the member joins
                # again.
                ((stored.protocol or "", m.subscription),),
            )
            member.assignment = m.assignment
            it.members[m.member] = member
            if m.instance is not None:
                it.static_members[m.instance] = m.member
        return it

    def stored(self, assignments: dict[str, bytes], now_ms: int) -> StoredGroup:
        """As this generation is written to the log."""
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
        kind = self.protocol_type or ""
        return StoredGroup(kind, self.generation, self.protocol, self.leader, members, now_ms)

    # -- state -------------------------------------------------------------------------------------

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    @property
    def can_rebalance(self) -> bool:
        return self.state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def transition_to(self, state: GroupState) -> None:
        allowed = VALID_PREVIOUS_STATES[state]
        # Kafka throws IllegalStateException: a bug of the program, not a state of the group.
        assert self.state in allowed, f"group {self.group}: {self.state} to {state}"
        self.state = state

    def init_next_generation(self) -> None:
        """Everybody has joined who will (initNextGeneration)."""
        self.generation += 1
        if self.members:
            self.protocol = self.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE)
        else:
            # Nobody is left. The offsets stay, and with them the group.
            self.protocol = None
            self.transition_to(GroupState.EMPTY)

    # -- members -----------------------------------------------------------------------------------

    def add(self, member: MemberMetadata, on_joined: OnJoined) -> None:
        # The first member says what kind of group it is, until it is empty again.
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member
        self.members[member.member] = member
        member.on_joined = on_joined

    def remove(self, member: str) -> None:
        """Remove a member; another one leads if it did."""
        gone = self.members.pop(member, None)
        if gone is not None and gone.instance is not None:
            self.static_members.pop(gone.instance, None)
        if self.leader == member:
            # The oldest of those that are left; Kafka takes the first of a hash map, which may be
            # any.
            self.leader = next(iter(self.members), None)

    def replace_static_member(self, old: str, new: str) -> MemberMetadata:
        """The instance has restarted: it takes its former place under a new member id. The
        process that still waits under the old one is fenced (replaceGroupInstance)."""
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
        """Another process has this instance id now."""
        # An instance that is not known fences nobody: the caller finds the member unknown.
        return instance is not None and self.static_members.get(instance, member) != member

    @property
    def awaiting_join(self) -> list[MemberMetadata]:
        return [m for m in self.members.values() if m.on_joined is not None]

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.awaiting_join) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as the slowest member may take."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def maybe_elect_new_joined_leader(self) -> bool:
        """A static leader that has not joined again hands over to one that has; False where none
        has (maybeElectNewJoinedLeader)."""
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
        """Whether a member with these protocols can join the others."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        return self.protocol_type == protocol_type and bool(self._candidates().intersection(names))

    def _candidates(self) -> frozenset[str]:
        """Protocols that every member has."""
        of_members = [frozenset(n for n, _ in m.protocols) for m in self.members.values()]
        return frozenset.intersection(*of_members) if of_members else frozenset()

    def select_protocol(self) -> str:
        """The one that most members vote for."""
        candidates = self._candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    # -- what others are shown ---------------------------------------------------------------------

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """For the leader's assignment."""
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

    def on_offset_committed(
        self, partition: TopicPartition, committed: CommittedOffset, base_offset: int
    ) -> None:
        """A commit is in the log. Answers to two commits may come in the other order: what stands
        later in the log wins (onOffsetCommitAppend)."""
        if base_offset > self.offset_bases.get(partition, -1):
            self.offsets[partition] = committed
            self.offset_bases[partition] = base_offset
