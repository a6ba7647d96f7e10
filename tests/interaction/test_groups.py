"""Consumer groups at their coordinator, in virtual time: joining, syncing, sessions, offsets, and
what the next coordinator finds in the log."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.broker.metadata_cache import LEADER_DURING_DELETE
from emulator.kafka.coordinator.group_coordinator import GroupCoordinator
from emulator.kafka.coordinator.group_metadata_manager import GroupMetadataManager
from emulator.kafka.coordinator.group_records import group_key, offset_key
from emulator.kafka.model.record_batch import records_of
from emulator.kafka.model.topic_names import GROUP_METADATA_TOPIC
from emulator.kafka.protocol.groups import (
    CommittedOffset,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    GroupRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
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
from emulator.kafka.protocol.messages import UpdateMetadataRequest
from emulator.trace.values import TopicPartition
from tests.interaction.hosting import LIVE, ORDERS_0, Hosting, fetch, leader_and_isr, state_of
from tests.interaction.playbook import WALL_MS, Incoming, Playbook, after_ms, at_once
from zk.errors import Code
from zk.ops import Reply

OFFSETS_0 = TopicPartition(GROUP_METADATA_TOPIC, 0)
RANGE = (("range", b"topics"),)


class Member:
    """A client's connection; its answers come out as lines. Member ids end with a UUID of zeros
    but for its last digit."""

    host = "/127.0.0.1"

    def __init__(self, play: Playbook, client: str) -> None:
        self._play, self.client = play, client

    def respond(self, response: Any) -> None:
        self._play.say(f"{self.client}: {line_of(response)}")

    def hang_up(self) -> None:
        self._play.say(f"{self.client}: closed")


def short(member: str) -> str:
    name, _, rest = member.partition("-")
    return f"{name}{rest[-1:]}" if name else "nobody"


def line_of(response: Any) -> str:
    match response:
        case JoinGroupResponse() if response.error:
            return f"{response.error.name} {short(response.member)}"
        case JoinGroupResponse():
            members = ",".join(short(m.member) for m in response.members)
            leads = f" leads {members}" if members else f" follows {short(response.leader)}"
            return f"{short(response.member)} in {response.generation}{leads}"
        case SyncGroupResponse():
            return f"{response.error.name} {response.assignment.decode()}".rstrip()
        case OffsetFetchResponse():
            found = " ".join(f"{p}@{o.offset}" for p, o in response.offsets)
            return f"{response.error.name} {found}".rstrip()
        case OffsetCommitResponse():
            return " ".join(f"{p} {error.name}" for p, error in response.partitions)
        case LeaveGroupResponse(members=members) if members:
            return " ".join(error.name for _, error in members)
        case DescribeGroupsResponse():
            members = ",".join(short(m.member) for m in response.members)
            return f"{response.error.name} {response.state} {members}".rstrip()
        case ListGroupsResponse():
            return " ".join(f"{g.group} {g.state}" for g in response.groups)
    return str(response.error.name)


class Coordinating(Hosting):
    """Broker 1 leads the only partition of __consumer_offsets; by default alone in its ISR."""

    def __init__(self, isr: tuple[int, ...] = (1,), disk: Disk | None = None, **how: Any) -> None:
        super().__init__(disk=disk, **how)
        self.zookeeper.presets[f"/config/topics/{GROUP_METADATA_TOPIC}"] = Reply(Code.NO_NODE)
        manager = GroupMetadataManager(
            self.context, self.replicas, 1, lambda: WALL_MS + self.kernel.now_ms()
        )
        self.drawn = 0
        self.groups = GroupCoordinator(self.context, manager, self.metadata_cache, self._draw)

        def moved(leads: list[TopicPartition], follows: list[TopicPartition]) -> None:
            for partition in leads:
                self.groups.on_election(partition.partition)
            for partition in follows:
                self.groups.on_resignation(partition.partition)

        self.replicas.on_leadership_change = moved
        self >> leader_and_isr(state_of(OFFSETS_0, isr=isr))
        self.settle()
        self.forget()

    def _draw(self, below: int) -> int:
        """Four numbers make an id; the last of them counts."""
        self.drawn += 1
        return self.drawn // 4 if self.drawn % 4 == 0 else 0

    def _hear(self, event: Any) -> None:
        """Ignore the partition's own log."""


def asks(client: str, request: GroupRequest) -> Incoming:
    def start(play: Playbook) -> None:
        assert isinstance(play, Coordinating)
        play.process.spawn(client, play.groups.handle(request, Member(play, client)))

    return start


def identity(member: str) -> str:
    """`a1`: what client a was given first."""
    return f"{member[0]}-00000000-0000-0000-0000-00000000000{member[1]}" if member else ""


def join(client: str, member: str = "", **more: Any) -> Incoming:
    session = more.pop("session_ms", 10_000)
    static = more.pop("instance", None)
    protocols = more.pop("protocols", RANGE)
    request = JoinGroupRequest(
        "g", session, 60_000, identity(member), static, "consumer", protocols, **more
    )
    return asks(client, request)


def sync(client: str, member: str, generation: int, *assigned: str) -> Incoming:
    assignments = tuple((identity(name), f"part {name}".encode()) for name in assigned)
    request = SyncGroupRequest("g", generation, identity(member), assignments=assignments)
    return asks(client, request)


def heartbeat(client: str, member: str, generation: int) -> Incoming:
    return asks(client, HeartbeatRequest("g", generation, identity(member)))


def leave(client: str, member: str) -> Incoming:
    return asks(client, LeaveGroupRequest("g", (MemberIdentity(identity(member)),)))


def commit(client: str, member: str, generation: int, offset: int) -> Incoming:
    offsets = ((ORDERS_0, CommittedOffset(offset)),)
    return asks(client, OffsetCommitRequest("g", generation, identity(member), None, offsets))


offsets = asks("offsets", OffsetFetchRequest("g"))
described = asks("describe", DescribeGroupsRequest("g"))


def stable(play: Coordinating) -> Coordinating:
    """Members a1, which leads, and b2, in generation 1."""
    play >> at_once(join("a"), join("b")) >> after_ms(6000)
    play << "a: a1 in 1 leads a1,b2" << "b: b2 in 1 follows a1"
    play >> sync("b", "b2", 1) >> sync("a", "a1", 1, "a1", "b2")
    play << "a: NONE part a1" << "b: NONE part b2"
    return play


# -- joining ---------------------------------------------------------------------------------------


def test_members_that_start_together_get_one_generation() -> None:
    """group.initial.rebalance.delay.ms starts again if a member has joined meanwhile."""
    with Coordinating() as play:
        play >> join("a") >> after_ms(2000) >> join("b") >> after_ms(3000) >> after_ms(999)
        play >> after_ms(1) << "a: a1 in 1 leads a1,b2" << "b: b2 in 1 follows a1"


def test_a_single_member_waits_once() -> None:
    with Coordinating() as play:
        play >> join("a") >> after_ms(2999) >> after_ms(1) << "a: a1 in 1 leads a1"


def test_a_new_member_is_given_an_id_first_and_is_waited_for() -> None:
    """KIP-394: until it joins with it, or its session ends, the rebalance is not complete."""
    with stable(Coordinating()) as play:
        play >> join("c", requires_known_member_id=True) << "c: MEMBER_ID_REQUIRED c3"
        play >> at_once(join("a", "a1"), join("b", "b2")) >> join("c", "c3")
        play << "a: a1 in 2 leads a1,b2,c3" << "b: b2 in 2 follows a1" << "c: c3 in 2 follows a1"


def test_an_id_that_nobody_joins_with_is_waited_for_as_long_as_a_session() -> None:
    with stable(Coordinating()) as play:
        play >> join("c", requires_known_member_id=True) << "c: MEMBER_ID_REQUIRED c3"
        play >> at_once(join("a", "a1"), join("b", "b2")) >> after_ms(9999) >> after_ms(1)
        play << "a: a1 in 2 leads a1,b2" << "b: b2 in 2 follows a1"


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (join("a", session_ms=5999), "a: INVALID_SESSION_TIMEOUT nobody"),
        (join("a", "a1"), "a: UNKNOWN_MEMBER_ID a1"),
        (join("a", protocols=()), "a: INCONSISTENT_GROUP_PROTOCOL nobody"),
        (sync("a", "a1", 1), "a: UNKNOWN_MEMBER_ID"),
        (heartbeat("a", "a1", 1), "a: UNKNOWN_MEMBER_ID"),
        (leave("a", "a1"), "a: UNKNOWN_MEMBER_ID"),
        (commit("a", "a1", 1, 5), "a: orders-0 ILLEGAL_GENERATION"),
        (described, "describe: NONE Dead"),
    ],
)
def test_what_a_group_that_does_not_exist_answers(request_: Incoming, answer: str) -> None:
    with Coordinating() as play:
        play >> request_ << answer


def test_members_need_a_protocol_in_common() -> None:
    with stable(Coordinating()) as play:
        play >> join("c", protocols=(("sticky", b""),)) << "c: INCONSISTENT_GROUP_PROTOCOL nobody"


def test_most_members_choose_the_protocol() -> None:
    both, other = (("range", b"r"), ("sticky", b"s")), (("sticky", b"s"), ("range", b"r"))
    with Coordinating() as play:
        play >> at_once(join("a", protocols=both), join("b", protocols=other))
        play >> join("c", protocols=other) >> after_ms(6000)
        play << "a: a1 in 1 leads a1,b2,c3" << "b: b2 in 1 follows a1" << "c: c3 in 1 follows a1"
        (group,) = play.groups._manager.groups.values()
        assert group.protocol == "sticky"


def test_a_broker_that_does_not_lead_the_partition_is_no_coordinator() -> None:
    with stable(Coordinating()) as play:
        play >> join("a", "a1") >> leader_and_isr(state_of(OFFSETS_0, leader=2, epoch=5))
        play << "LeaderAndIsr: NONE NONE" << "a: NOT_COORDINATOR a1"
        play << "to 2: OffsetsForLeaderEpochRequest"
        play >> heartbeat("b", "b2", 1) << "b: NOT_COORDINATOR"


# -- rebalances ------------------------------------------------------------------------------------


def test_a_member_that_joins_makes_all_join_again() -> None:
    with stable(Coordinating()) as play:
        play >> join("c") >> heartbeat("a", "a1", 1) << "a: REBALANCE_IN_PROGRESS"
        play >> join("a", "a1") >> join("b", "b2")
        play << "a: a1 in 2 leads a1,b2,c3" << "b: b2 in 2 follows a1" << "c: c3 in 2 follows a1"
        play >> sync("b", "b2", 2) >> join("d") << "b: REBALANCE_IN_PROGRESS"


def test_who_does_not_join_again_is_out_after_the_rebalance_time_out() -> None:
    """It keeps sending heartbeats meanwhile, so its session does not end first."""
    with stable(Coordinating()) as play:
        play >> join("c") >> join("a", "a1")
        for _ in range(8):
            play >> heartbeat("b", "b2", 1) << "b: REBALANCE_IN_PROGRESS" >> after_ms(7000)
        play >> heartbeat("b", "b2", 1) << "b: REBALANCE_IN_PROGRESS" >> after_ms(4000)
        play << "a: a1 in 2 leads a1,c3" << "c: c3 in 2 follows a1"
        play >> heartbeat("b", "b2", 1) << "b: UNKNOWN_MEMBER_ID"


def test_a_member_that_is_not_heard_of_is_out_after_its_session() -> None:
    with stable(Coordinating()) as play:
        play >> after_ms(9000) >> heartbeat("a", "a1", 1) << "a: NONE" >> after_ms(1000)
        play >> heartbeat("a", "a1", 1) << "a: REBALANCE_IN_PROGRESS"
        play >> join("a", "a1") << "a: a1 in 2 leads a1"


def test_when_the_leader_leaves_another_member_leads() -> None:
    with stable(Coordinating()) as play:
        play >> leave("a", "a1") << "a: NONE" >> join("b", "b2") << "b: b2 in 2 leads b2"
        play >> leave("b", "b2") << "b: NONE" >> described << "describe: NONE Empty"


def test_a_static_member_that_restarts_takes_its_place() -> None:
    """KIP-345: no other member rejoins, and the previous process is fenced."""
    with Coordinating() as play:
        play >> at_once(join("s", instance="s"), join("b")) >> after_ms(6000)
        play << "s: s1 in 1 leads s1,b2" << "b: b2 in 1 follows s1"
        play >> at_once(sync("b", "b2", 1), sync("s", "s1", 1, "s1", "b2"))
        play << "s: NONE part s1" << "b: NONE part b2"
        play >> join("s", instance="s") << "s: s3 in 1 follows s1"
        play >> sync("s", "s3", 1) << "s: NONE part s1"
        play >> join("s", "s1", instance="s") << "s: FENCED_INSTANCE_ID s1"
        play >> heartbeat("b", "b2", 1) << "b: NONE"


def test_a_generation_that_is_not_stored_in_time_is_to_be_joined_again() -> None:
    """GroupMetadataManagerTest.testStoreGroupErrorMapping: REQUEST_TIMED_OUT."""
    with Coordinating(isr=(1, 2)) as play:
        play >> join("a") >> after_ms(3000) << "a: a1 in 1 leads a1"
        play >> sync("a", "a1", 1, "a1") >> after_ms(5000)
        play << "a: REBALANCE_IN_PROGRESS"


# -- offsets ---------------------------------------------------------------------------------------


def test_an_offset_is_committed_when_the_isr_has_it() -> None:
    with Coordinating(isr=(1, 2)) as play:
        play >> fetch(2, at=0, partition=OFFSETS_0, max_wait_ms=0) << "fetch-2: nothing, hw 0"
        play.run(play.metadata_cache.update(orders_known()))
        play >> commit("a", "", -1, 5) >> offsets << "offsets: NONE"
        play >> fetch(2, at=1, partition=OFFSETS_0, max_wait_ms=0)
        play << "a: orders-0 NONE" << "fetch-2: nothing, hw 0"
        play >> offsets << "offsets: NONE orders-0@5"


def orders_known() -> UpdateMetadataRequest:
    """The broker's metadata cache has orders-0."""
    return UpdateMetadataRequest(2, 7, -1, (state_of(),), LIVE)


def test_of_a_partition_that_does_not_exist_no_offset_is_kept() -> None:
    with Coordinating() as play:
        play >> commit("a", "", -1, 5) << "a: orders-0 UNKNOWN_TOPIC_OR_PARTITION"


def test_the_next_coordinator_finds_groups_and_offsets_in_the_log() -> None:
    """Members continue undisturbed, and have a whole session timeout for their next heartbeat."""
    with stable(Coordinating()) as before:
        before.run(before.metadata_cache.update(orders_known()))
        before >> commit("a", "a1", 1, 7) << "a: orders-0 NONE"
        before >> commit("a", "a1", 1, 9) << "a: orders-0 NONE"
    with Coordinating(disk=before.disk) as after:
        after >> offsets << "offsets: NONE orders-0@9" >> described << "describe: NONE Stable a1,b2"
        after >> after_ms(9000) >> heartbeat("a", "a1", 1) << "a: NONE" >> after_ms(1000)
        after >> join("a", "a1") << "a: a1 in 2 leads a1"
        after >> sync("a", "a1", 2, "a1") << "a: NONE part a1"


# -- expiry ----------------------------------------------------------------------------------------

MINUTE_MS = 60_000


def expiring(**how: Any) -> Coordinating:
    """Offsets are kept for a minute, which is checked each second; orders-0 exists."""
    play = Coordinating(
        offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000, **how
    )
    play.run(play.metadata_cache.update(orders_known()))
    return play


def left_in_the_log(play: Coordinating) -> dict[bytes, bytes | None]:
    """The last value of each key; None: a tombstone."""
    log = play.hosted(OFFSETS_0).log
    assert log is not None
    records = (r for b in log.batches if b.data for r in records_of(b.data, b.base_offset))
    return {record.key: record.value for record in records if record.key is not None}


def test_offsets_of_a_group_without_members_expire_a_minute_after_their_commit() -> None:
    """testExpireGroupWithOffsetsOnly: such a group has no record of its own, so no tombstone."""
    with expiring() as play:
        play >> commit("a", "", -1, 5) << "a: orders-0 NONE" >> after_ms(MINUTE_MS - 1000)
        play >> offsets << "offsets: NONE orders-0@5" >> after_ms(2000)
        play >> offsets << "offsets: NONE" >> described << "describe: NONE Dead"
    assert left_in_the_log(play) == {offset_key("g", ORDERS_0): None}


def test_a_commit_postpones_the_expiry() -> None:
    """testOffsetExpirationOfSimpleConsumer."""
    with expiring() as play:
        play >> commit("a", "", -1, 5) << "a: orders-0 NONE" >> after_ms(MINUTE_MS - 1000)
        play >> commit("a", "", -1, 6) << "a: orders-0 NONE" >> after_ms(MINUTE_MS - 1000)
        play >> offsets << "offsets: NONE orders-0@6" >> after_ms(2000) >> offsets
        play << "offsets: NONE"


def test_offsets_of_a_group_with_members_do_not_expire() -> None:
    """testOffsetExpirationSemantics: the minute begins when the last member leaves."""
    with stable(expiring()) as play:
        play >> commit("a", "a1", 1, 7) << "a: orders-0 NONE"
        for _ in range(15):
            play >> after_ms(5000) >> heartbeat("a", "a1", 1) << "a: NONE"
            play >> heartbeat("b", "b2", 1) << "b: NONE"
        play >> offsets << "offsets: NONE orders-0@7"
        play >> leave("a", "a1") << "a: NONE" >> leave("b", "b2") << "b: NONE"
        play >> after_ms(MINUTE_MS - 1000) >> offsets << "offsets: NONE orders-0@7"
        play >> after_ms(2000) >> offsets << "offsets: NONE" >> described << "describe: NONE Dead"
    assert left_in_the_log(play) == {offset_key("g", ORDERS_0): None, group_key("g"): None}


def test_a_group_without_members_and_offsets_is_removed() -> None:
    """testGroupMetadataRemoval."""
    with stable(expiring()) as play:
        play >> leave("a", "a1") << "a: NONE" >> leave("b", "b2") << "b: NONE"
        play >> described << "describe: NONE Empty" >> after_ms(1000)
        play >> described << "describe: NONE Dead"
    assert left_in_the_log(play) == {group_key("g"): None}


def test_a_group_whose_first_commit_is_being_written_stays() -> None:
    """hasOffsets counts pendingOffsetCommits: the follower of the ISR has not fetched it yet."""
    with Coordinating(isr=(1, 2), offsets_retention_check_interval_ms=1000) as play:
        play.run(play.metadata_cache.update(orders_known()))
        play >> fetch(2, at=0, partition=OFFSETS_0, max_wait_ms=0) << "fetch-2: nothing, hw 0"
        play >> commit("a", "", -1, 5) >> after_ms(2000) >> described << "describe: NONE Empty"
        play >> fetch(2, at=1, partition=OFFSETS_0, max_wait_ms=0)
        play << "a: orders-0 NONE" << "fetch-2: nothing, hw 0"
        play >> offsets << "offsets: NONE orders-0@5"


def test_the_next_coordinator_finds_in_the_log_since_when_a_group_is_empty() -> None:
    """testLoadGroupWithEmptyState, and the group's currentStateTimestamp (2.1)."""
    with stable(expiring()) as before:
        before >> commit("a", "a1", 1, 7) << "a: orders-0 NONE"
        before >> leave("a", "a1") << "a: NONE" >> leave("b", "b2") << "b: NONE"
    with expiring(disk=before.disk) as after:
        after >> after_ms(before.kernel.now_ms() - after.kernel.now_ms())
        after >> after_ms(MINUTE_MS - 1000) >> offsets << "offsets: NONE orders-0@7"
        after >> after_ms(2000) >> offsets << "offsets: NONE"


def test_a_version_with_expiry_times_in_its_records_gives_one_to_records_without() -> None:
    """loadGroupsAndOffsets@1.1.1: the commit's time and this broker's retention."""
    with expiring() as before:
        before >> commit("a", "", -1, 5) << "a: orders-0 NONE"
    with expiring(profile="1.0", disk=before.disk) as after:
        after >> after_ms(MINUTE_MS) >> offsets << "offsets: NONE orders-0@5"
        after >> after_ms(2000) >> offsets << "offsets: NONE"


# -- deletion of topics ----------------------------------------------------------------------------


def orders_deleted() -> Incoming:
    """UpdateMetadata of the controller as KafkaApis handles it."""

    def start(play: Playbook) -> None:
        assert isinstance(play, Coordinating)

        async def handle() -> None:
            deleted = await play.metadata_cache.update(
                UpdateMetadataRequest(2, 7, -1, (state_of(leader=LEADER_DURING_DELETE),), LIVE)
            )
            await play.groups.handle_deleted_partitions(deleted)

        play.process.spawn("metadata", handle())

    return start


def test_offsets_are_deleted_after_topic_deletion() -> None:
    """OffsetCommitTest testOffsetsDeleteAfterTopicDeletion; a group with members stays."""
    with stable(Coordinating()) as play:
        play.run(play.metadata_cache.update(orders_known()))
        play >> commit("a", "a1", 1, 42) << "a: orders-0 NONE"
        play >> orders_deleted() >> offsets << "offsets: NONE"
        play >> described << "describe: NONE Stable a1,b2"
    assert left_in_the_log(play)[offset_key("g", ORDERS_0)] is None
    with Coordinating(disk=play.disk) as after:
        after >> offsets << "offsets: NONE" >> described << "describe: NONE Stable a1,b2"


def test_a_group_that_had_offsets_of_a_deleted_topic_alone_is_removed() -> None:
    """cleanupGroupMetadata: Empty and without offsets, it is Dead."""
    with stable(Coordinating()) as play:
        play.run(play.metadata_cache.update(orders_known()))
        play >> commit("a", "a1", 1, 42) << "a: orders-0 NONE"
        play >> leave("a", "a1") << "a: NONE" >> leave("b", "b2") << "b: NONE"
        play >> orders_deleted() >> described << "describe: NONE Dead"
    assert left_in_the_log(play) == {offset_key("g", ORDERS_0): None, group_key("g"): None}


def test_a_commit_whose_topic_is_deleted_while_it_is_written_does_not_count() -> None:
    """removeOffsets takes pendingOffsetCommits, and onOffsetCommitAppend finds none."""
    with Coordinating(isr=(1, 2)) as play:
        play.run(play.metadata_cache.update(orders_known()))
        play >> fetch(2, at=0, partition=OFFSETS_0, max_wait_ms=0) << "fetch-2: nothing, hw 0"
        play >> commit("a", "", -1, 5) >> orders_deleted()
        play >> fetch(2, at=1, partition=OFFSETS_0, max_wait_ms=0)
        play << "a: orders-0 NONE" << "fetch-2: nothing, hw 0" >> offsets << "offsets: NONE"


# -- deletion of groups ----------------------------------------------------------------------------


def test_only_an_empty_group_can_be_deleted_and_then_it_is_gone_from_the_log() -> None:
    with stable(Coordinating()) as play:
        play.run(play.metadata_cache.update(orders_known()))
        play >> commit("a", "a1", 1, 7) << "a: orders-0 NONE"
        play >> asks("admin", DeleteGroupsRequest("g")) << "admin: NON_EMPTY_GROUP"
        play >> leave("a", "a1") << "a: NONE" >> leave("b", "b2") << "b: NONE"
        play >> asks("admin", ListGroupsRequest(("stable",))) << "admin: "
        play >> asks("admin", ListGroupsRequest()) << "admin: g Empty"
        play >> asks("admin", DeleteGroupsRequest("g")) << "admin: NONE"
        play >> asks("admin", DeleteGroupsRequest("g")) << "admin: GROUP_ID_NOT_FOUND"
    with Coordinating(disk=play.disk) as after:
        after >> offsets << "offsets: NONE" >> described << "describe: NONE Dead"
