"""Section 2 of the spec by version: fencing, election, registration, sessions, notifications. Each
with its guard or strategy, without it, and in the versions on either side."""

from __future__ import annotations

from functools import partial

import pytest

from emulator.kafka.controller.handlers import ChildChangeHandler, NodeChangeHandler
from emulator.kafka.coordinator.producer_id_manager import MAX_PRODUCER_ID
from emulator.kafka.node import HealthCheck
from emulator.scenario.actions.expire_session import ExpireSession
from emulator.scenario.actions.life import Kill, Start
from emulator.trace import events
from tests.interaction.controlling import (
    CHANGED,
    CREATED,
    DELETED,
    ORDERS_0,
    Controlling,
    controller_is,
    isr_change,
    led_by,
    notification,
    state,
)
from tests.interaction.playbook import (
    ME,
    Incoming,
    Playbook,
    after_ms,
    at_once,
    children,
    created,
    data,
    multi_ok,
    no_node,
    ok,
    reply,
    session_is,
    thread,
    watch,
)
from tests.interaction.test_commands import reassigns
from tests.spec.emulated import Emulated, switched
from zk import paths
from zk.client.codec_admin import (
    BrokerInfo,
    EndPoint,
    ProducerIdBlock,
    encode_broker,
    encode_producer_id_block,
)
from zk.errors import Code
from zk.ops import GetData, Request, SessionState, SetData

INFO = BrokerInfo((EndPoint("PLAINTEXT", "PLAINTEXT", "host-1", 9091),))
CREATE_CONTROLLER = "create ephemeral /controller: broker 1"
AT_ONCE = "[create ephemeral /controller: broker 1, set /controller_epoch at v12: 8]"
NODE = "/log_dir_event_notification/log_dir_event_0000000000"
IDS, ORDERS_ZNODE = "/brokers/ids", "/brokers/topics/orders"


def without(*guards: str, profile: str = "2.6") -> dict[str, object]:
    return {"profile": profile, "guards": dict.fromkeys(guards, False)}


def having(guard: str, profile: str) -> dict[str, object]:
    return {"profile": profile, "guards": {guard: True}}


def lists_reassignments() -> Incoming:
    """ListPartitionReassignments of all partitions."""

    def call(play: Playbook) -> None:
        assert isinstance(play, Controlling)
        play.controller.requests.list_partition_reassignments(
            None, lambda listed: play.say(f"listed: {getattr(listed, 'name', listed)}")
        )

    return call


def electing(how: dict[str, object]) -> Controlling:
    """It has found no controller."""
    play = Controlling(active=False, **how)  # type: ignore[arg-type]
    play.controller.startup()
    play.settle()
    play << "exists /controller W" >> no_node << "getData /controller W" >> no_node
    return play


# -- 2.7: the election -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"profile": "2.1"}, {"profile": "2.6"}])
def test_2_7_from_2_1_on_the_election_is_one_multi(how: dict[str, object]) -> None:
    with electing(how) as play:
        play << "getData /controller_epoch" >> data("7", version=12) << AT_ONCE


@pytest.mark.parametrize("how", [{"profile": "1.1"}, without("atomic-election")])
def test_2_7_up_to_2_0_it_takes_three_steps(how: dict[str, object]) -> None:
    """H8: between the first and the last, another may have been elected, and its epoch is read."""
    with electing(how) as play:
        play << CREATE_CONTROLLER >> created("/controller") << "getData /controller_epoch"
        play >> data("8", version=13) << "set /controller_epoch at v13: 9" >> ok(14)
        assert play.said.popleft().startswith("controller in epoch 9")
        play.forget()


def test_2_7_up_to_1_0_the_epoch_is_looked_for_before_it_is_read() -> None:
    with electing({"profile": "1.0"}) as play:
        play << CREATE_CONTROLLER >> created("/controller") << "exists /controller_epoch"
        play >> no_node << "set /controller_epoch at v0: 1" >> no_node
        play << "create /controller_epoch: 1" >> created("/controller_epoch")
        play << "controller in epoch 1, v1"
        play.forget()


def test_2_7_up_to_2_0_who_loses_the_epoch_before_it_was_ever_controller_deletes_the_node() -> None:
    """H7: a write of its own whose answer was lost is another version, too."""
    with electing({"profile": "1.1"}) as play:
        play << CREATE_CONTROLLER >> created("/controller") << "getData /controller_epoch"
        (
            play
            >> data("8", version=13)
            << "set /controller_epoch at v13: 9"
            >> reply(Code.BAD_VERSION)
        )
        play << "election failed: ZooKeeperError: BAD_VERSION for /controller_epoch"
        play << "delete /controller" >> ok()


@pytest.mark.parametrize(("profile", "reads"), [("0.9.0", 2), ("0.10.2", 2), ("1.0", 3)])
def test_2_7_up_to_0_10_who_hears_that_the_controller_is_gone_reads_once_before_it_runs(
    profile: str, reads: int
) -> None:
    """ZkClient looks and reads for its listener, and the election reads; from 1.0 on the event
    reads once more, to resign. As in six recorded elections of 0.9.0.1, 0.10.2.2 and 1.0.2."""
    with Controlling(active=False, profile=profile) as play:
        play.controller.startup()
        play.settle()
        play << "exists /controller W" >> ok() << "getData /controller W" >> controller_is(2)
        play >> watch(DELETED, "/controller") << "exists /controller W" >> no_node
        for _ in range(reads):
            play << "getData /controller W" >> no_node
        play << CREATE_CONTROLLER
        play.forget()


@pytest.mark.parametrize(
    ("how", "reads"),
    [
        ({"profile": "0.9.0"}, 2),
        ({"profile": "0.10.2"}, 1),
        (without("only-the-active-listens", profile="0.10.2"), 2),
    ],
)
def test_2_10_up_to_0_9_the_listener_of_a_resigned_controller_still_reads_the_topic(
    how: dict[str, object], reads: int
) -> None:
    """ZkClient calls all listeners after an expiry. Each call has been queued before the controller
    resigns, and comes after it; as in recordings of 0.8.2.2 and 0.9.0.1."""
    with Emulated(3, 1, 2, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 2, 3)).run_ms(2000).now_on()
        cluster.do(ExpireSession(3)).run_ms(3000)
        sent = cluster.seen(events.ZkSent, broker=3)
        of_topic = [one for one in sent if (one.op, one.path) == ("getData", ORDERS_ZNODE)]
        assert len(of_topic) == reads


def test_2_7_who_finds_the_node_taken_in_the_first_step_stays_a_broker() -> None:
    with electing({"profile": "1.1"}) as play:
        play << CREATE_CONTROLLER >> reply(Code.NODE_EXISTS) << "getData /controller W"
        play >> data("{}", owner=0x777) << "exists /controller W" >> ok()
        play << "getData /controller W" >> controller_is(3)
        assert not play.controller.is_active


@pytest.mark.parametrize("profile", ["0.9.0", "0.10.2", "1.0"])
def test_2_8_from_0_9_to_1_0_whose_an_ephemeral_is_is_read_past_the_listeners(profile: str) -> None:
    """ZKCheckedEphemeral asks ZooKeeper itself; what is asked through ZkClient is watched."""
    with Controlling(active=False, profile=profile) as play:
        play.controller.startup()
        play.settle()
        play << "exists /controller W" >> reply(Code.NO_NODE)
        play << "getData /controller W" >> reply(Code.NO_NODE)
        play << CREATE_CONTROLLER >> reply(Code.NODE_EXISTS)
        play << "getData /controller" >> data("{}", owner=0x777)
        play << "getData /controller W" >> controller_is(3)
        assert not play.controller.is_active


@pytest.mark.parametrize(
    ("how", "resigns"),
    [
        ({"profile": "0.8.2"}, False),
        ({"profile": "0.9.0"}, True),
        (without("replaced-resigns", profile="0.9.0"), False),
    ],
)
def test_2_7_up_to_0_8_2_a_controller_that_finds_another_in_its_place_goes_on(
    how: dict[str, object], resigns: bool
) -> None:
    """Its node was deleted, and there again before it had looked."""
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}, **how) as play:  # type: ignore[arg-type]
        play.client.register_change_handler(play.controller._controller_handler)
        play >> watch(DELETED, "/controller") << "exists /controller W" >> ok()
        play << "getData /controller W" >> controller_is(3)
        if resigns:
            play << "resigned"
        assert play.controller.is_active is not resigns


def test_2_7_up_to_0_8_1_a_controller_takes_over_whatever_epoch_is_there() -> None:
    """KAFKA-1096."""
    how = without("epoch-only-from-election", profile="0.8.2")
    with Controlling(active=False, **how) as play:  # type: ignore[arg-type]
        play.controller.startup()
        play.settle()
        play << "exists /controller_epoch W" >> ok()
        play << "exists /controller W" >> ok() << "getData /controller W" >> controller_is(1)
        play.controller.context.epoch = 7
        play >> watch(CHANGED, "/controller_epoch") << "exists /controller_epoch W" >> ok()
        play << "getData /controller_epoch W" >> data("9", version=13)
        play << "getData /controller_epoch W" >> data("9", version=13)
        assert play.controller.context.epoch == 9


def test_2_7_from_0_8_2_on_nobody_watches_the_epoch() -> None:
    with Controlling(active=False, profile="0.8.2") as play:
        play.controller.startup()
        play.settle()
        play << "exists /controller W" >> ok() << "getData /controller W" >> controller_is(1)


# -- 2.6: fencing ----------------------------------------------------------------------------------


def failing_over(how: dict[str, object]) -> Controlling:
    play = electing(how)
    if play.said[0] == CREATE_CONTROLLER:
        play << CREATE_CONTROLLER >> created("/controller") << "getData /controller_epoch"
        play >> data("7", version=12) << "set /controller_epoch at v12: 8" >> ok(13)
    else:
        play << "getData /controller_epoch" >> data("7", version=12) << AT_ONCE >> multi_ok(13)
    play.said.popleft()
    return play


@pytest.mark.parametrize(
    ("how", "fenced"),
    [
        ({"profile": "1.1"}, False),
        ({"profile": "2.1"}, True),
        (without("fenced-controller-writes"), False),
    ],
)
def test_2_6_up_to_2_0_a_controllers_writes_are_not_fenced(
    how: dict[str, object], fenced: bool
) -> None:
    """H6."""
    with failing_over(how) as play:
        play << "exists /admin/preferred_replica_election W" >> no_node
        play << "exists /admin/reassign_partitions W" >> no_node
        play << "getChildren /log_dir_event_notification W" >> children(NODE.rpartition("/")[2])
        play << (f"[check /controller_epoch v13, delete {NODE}]" if fenced else f"delete {NODE}")
        play.forget()


@pytest.mark.parametrize("how", [{"profile": "1.1"}, without("fenced-controller-writes")])
def test_2_7_up_to_2_0_a_fail_over_that_goes_wrong_deletes_whatever_node_is_there(
    how: dict[str, object],
) -> None:
    """H7: it may be a successor's."""
    with failing_over(how) as play:
        play << "exists /admin/preferred_replica_election W" >> reply(Code.NO_AUTH)
        play << "election failed: ZooKeeperError: NO_AUTH for /admin/preferred_replica_election"
        play << "resigned" << "delete /controller" >> ok()


# -- 2.8: registration -----------------------------------------------------------------------------


def registering(how: dict[str, object]) -> Playbook:
    play = Playbook(**how)  # type: ignore[arg-type]
    play >> thread("registration", play.zk.register_broker(ME, INFO))
    return play


@pytest.mark.parametrize("how", [{"profile": "2.1"}, without("broker-epochs")])
def test_2_8_up_to_2_1_the_registration_is_a_plain_create_without_an_epoch(
    how: dict[str, object],
) -> None:
    with registering(how) as play:
        play << "create ephemeral /brokers/ids/1" >> created("/brokers/ids/1")
        play << "registration: -1"


def test_2_8_from_2_2_on_its_czxid_is_the_brokers_epoch() -> None:
    with registering({"profile": "2.4"}) as play:
        play << "[create ephemeral /brokers/ids/1, set /brokers/ids/1 at v0]"
        play >> multi_ok(1, czxid=42) << "registration: 42"


@pytest.mark.parametrize(("profile", "parents"), [("0.8.2", False), ("0.9.0", True), ("1.0", True)])
def test_2_12_from_0_9_to_1_0_its_parents_are_created_first(profile: str, parents: bool) -> None:
    with registering({"profile": profile}) as play:
        if parents:
            play << "create /brokers" >> reply(Code.NODE_EXISTS)
            play << "create /brokers/ids" >> reply(Code.NODE_EXISTS)
        play << "create ephemeral /brokers/ids/1" >> created("/brokers/ids/1")
        play << "registration: -1"


def test_2_8_without_own_ephemeral_checked_0_9_creates_no_parents() -> None:
    with registering(without("own-ephemeral-checked", profile="0.9.0")) as play:
        play << "create ephemeral /brokers/ids/1" >> created("/brokers/ids/1")
        play << "registration: -1"


def registered(host: str) -> bytes:
    """Data that another process wrote earlier."""
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", host, 9091)
    return encode_broker(BrokerInfo((endpoint,), timestamp_ms=5))


FOUND = {
    "of an earlier session": (registered("host-1"), True),
    "of another broker": (registered("host-9"), False),
}


@pytest.mark.parametrize(
    "how", [{"profile": "0.8.2"}, without("own-ephemeral-checked", profile="2.1")]
)
@pytest.mark.parametrize("found", FOUND)
def test_2_8_in_0_8_x_equal_contents_are_waited_for_and_different_ones_fail(
    how: dict[str, object], found: str
) -> None:
    """A session's time-out later it is created again."""
    content, waits = FOUND[found]
    with registering({**how, "zookeeper_session_timeout_ms": 6000}) as play:
        play << "create ephemeral /brokers/ids/1" >> reply(Code.NODE_EXISTS)
        for _ in range(2):
            play << "getData /brokers/ids/1" >> data(content, owner=0x777)
        if waits:
            play >> after_ms(5999) >> after_ms(1)
            play << "create ephemeral /brokers/ids/1" >> created("/brokers/ids/1")
            play << "registration: -1"
        else:
            play << "registration: ZooKeeperError NODE_EXISTS for /brokers/ids/1"


def test_2_8_in_0_8_x_the_very_same_words_are_a_lost_reply() -> None:
    with registering({"profile": "0.8.2"}) as play:
        play << "create ephemeral /brokers/ids/1" >> reply(Code.NODE_EXISTS)
        play << "getData /brokers/ids/1" >> data(encode_broker(INFO), owner=0x777)
        play << "registration: -1"


@pytest.mark.parametrize(
    ("how", "replaced"),
    [({"profile": "2.4"}, True), (without("stale-registration-replaced", profile="2.4"), False)],
)
def test_2_8_from_2_2_on_a_stale_registration_of_ones_own_is_replaced(
    how: dict[str, object], replaced: bool
) -> None:
    with registering(how) as play:
        play << "[create ephemeral /brokers/ids/1, set /brokers/ids/1 at v0]"
        play >> multi_ok(1, czxid=42) << "registration: 42"
        expired = session_is(SessionState.EXPIRED)
        play >> at_once(session_is(SessionState.DISCONNECTED), expired) << "closeSession"
        play >> thread("registration", play.zk.register_broker(ME, INFO))
        play << "[create ephemeral /brokers/ids/1, set /brokers/ids/1 at v0]"
        play >> reply(Code.NODE_EXISTS) << "getData /brokers/ids/1" >> data("", owner=0x100)
        if replaced:
            play << "delete /brokers/ids/1" >> ok()
            play << "[create ephemeral /brokers/ids/1, set /brokers/ids/1 at v0]"
            play.forget()
        else:
            play << "registration: ZooKeeperError NODE_EXISTS for /brokers/ids/1"


# -- 2.1, 2.10: sessions ---------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "again"), [("0.8.2", True), ("1.0", True), ("1.1", False)])
def test_2_1_up_to_1_0_a_write_goes_out_again_on_the_next_session(
    profile: str, again: bool
) -> None:
    """KAFKA-2729 and KAFKA-3083: what an old controller was about to write is written by a session
    that knows nothing of it."""
    with Playbook(profile=profile) as play:
        write = SetData("/a", b"x", 5)
        play >> thread("writer", play.zk.one(write)) << "set /a at v5: x"
        play >> session_is(SessionState.DISCONNECTED)
        play >> at_once(reply(Code.CONNECTION_LOSS), session_is(SessionState.EXPIRED))
        if again:
            play << "closeSession" << "set /a at v5: x" >> ok(6)
            assert play.said.popleft().startswith("writer: ")
        else:
            assert play.said.popleft().startswith("writer: SessionExpired")
            play << "closeSession"


def told_that_it_is_disconnected(play: Playbook) -> None:
    """ZooKeeper's getState returns CONNECTED until the next attempt."""
    session = play.zookeeper.sessions[-1]
    assert session.listener is not None
    session.lane.post(partial(session.listener.on_state, SessionState.DISCONNECTED))


def test_2_1_up_to_1_0_a_request_that_lost_its_connection_waits_for_the_next_one() -> None:
    """Recorded 4 to 24 ms after the connection of the new session; what is sent earlier waits in
    the old one, for its end."""
    with Playbook(profile="1.0") as play:
        play >> thread("writer", play.zk.one(SetData("/a", b"x", 5))) << "set /a at v5: x"
        play >> at_once(told_that_it_is_disconnected, reply(Code.CONNECTION_LOSS))
        assert not play.said
        play >> session_is(SessionState.EXPIRED) << "closeSession" << "set /a at v5: x" >> ok(6)
        assert play.said.popleft().startswith("writer: ")


@pytest.mark.parametrize(
    ("how", "reads"),
    [
        ({"profile": "0.9.0"}, 1),
        ({"profile": "0.10.2"}, 2),
        (without("own-controller-znode-kept", profile="0.10.2"), 1),
        (having("own-controller-znode-kept", "0.9.0"), 2),
    ],
)
def test_2_10_up_to_0_10_a_broker_registers_when_its_controller_has_been_elected(
    how: dict[str, object], reads: int
) -> None:
    with renewing(how) as play:
        for _ in range(reads):
            play << "getData /controller" >> controller_is(3)
        play << "set /registered at v-1: x" >> ok()


def test_2_10_in_1_0_a_broker_registers_while_its_controller_is_being_elected() -> None:
    with renewing({"profile": "1.0"}) as play:
        play << "set /registered at v-1: x" << "getData /controller"
        play.forget()


@pytest.mark.parametrize(("profile", "resigns"), [("0.9.0", True), ("0.10.2", False)])
def test_2_10_from_0_10_2_on_a_controller_in_a_new_session_keeps_its_znode(
    profile: str, resigns: bool
) -> None:
    """KAFKA-4229: two expiries in a row, and the session before this one has created it."""
    with renewing({"profile": profile}, is_active=True) as play:
        if resigns:
            play << "resigned"
        play << "getData /controller W" >> controller_is(ME) << "set /registered at v-1: x"
        assert play.controller.is_active, "up to 0.9 in name only, without a fail-over"
        play.forget()


def renewing(how: dict[str, object], *, is_active: bool = False) -> Controlling:
    """A new session of a broker."""
    play = Controlling(active=is_active, **how)  # type: ignore[arg-type]
    if not is_active:
        play.controller.events.start()
    client = play.client
    client.register_state_handler(play.controller)
    if play.context.profile.controller_threads == "callbacks":
        client.wait_for_callbacks(play.controller.events.drained)

    async def register() -> None:
        await play.zk.one(SetData("/registered", b"x", -1))

    client.register_state_handler(HealthCheck(register))
    expired = at_once(session_is(SessionState.DISCONNECTED), session_is(SessionState.EXPIRED))
    return play >> expired << "closeSession"  # type: ignore[return-value]


@pytest.mark.parametrize("profile", ["0.8.2", "1.0", "2.6"])
def test_2_1_a_thread_that_waits_for_zookeeper_holds_up_no_other(profile: str) -> None:
    """Recorded in a renewed session of 1.0.2: requests of four threads in one millisecond."""

    async def sends(request: Request) -> None:
        await play.zk.one(request)

    with Playbook(profile=profile) as play:
        play >> thread("writer", sends(SetData("/a", b"x", 5))) << "set /a at v5: x"
        play >> thread("reader", sends(GetData("/b"))) << "getData /b"
        play >> ok(6) << "writer: done"
        play >> data("") << "reader: done"


@pytest.mark.parametrize(("profile", "expire_first"), [("1.0", False), ("1.1", True)])
def test_2_10_from_1_1_on_the_controller_resigns_before_there_is_a_new_session(
    profile: str, expire_first: bool
) -> None:
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}, profile=profile) as play:
        play.client.register_state_handler(play.controller)
        play.zookeeper.connects = False
        play >> session_is(SessionState.DISCONNECTED) >> session_is(SessionState.EXPIRED)
        if expire_first:
            play << "resigned" << "closeSession"
        else:
            play << "closeSession"
            assert play.controller.is_active, "until it is connected, and has looked"
        play.forget()


@pytest.mark.parametrize(
    ("how", "answers"),
    [
        ({"profile": "2.6"}, False),
        ({"profile": "2.7"}, True),
        (having("dropped-reassignment-calls-answered", "2.6"), True),
        (without("dropped-reassignment-calls-answered", profile="2.7"), False),
    ],
)
def test_2_10_up_to_2_6_a_controller_that_expires_answers_no_reassignment_call(
    how: dict[str, object], answers: bool
) -> None:
    """ControllerIntegrationTest.testPreemptionWithCallbacks."""
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}, **how) as play:  # type: ignore[arg-type]
        play.client.register_state_handler(play.controller)
        expired = at_once(session_is(SessionState.DISCONNECTED), session_is(SessionState.EXPIRED))
        play >> isr_change() << "getChildren /isr_change_notification W"
        play >> at_once(reassigns({ORDERS_0: (1, 2)}), lists_reassignments()) >> expired
        if answers:
            play << f"reassigned: {ORDERS_0} NOT_CONTROLLER" << "listed: NOT_CONTROLLER"
        assert not play.said
        play >> reply(Code.SESSION_EXPIRED)
        play.forget()


@pytest.mark.parametrize(("profile", "reads"), [("1.0", True), ("1.1", False)])
def test_2_12_the_event_thread_of_zkclient_reads_before_it_tells(profile: str, reads: bool) -> None:
    with Controlling(active=False, profile=profile) as play:
        play.controller.events.start()
        play.client.register_change_handler(play.controller._controller_handler)
        play >> watch(CREATED, "/controller") << "exists /controller W"
        if reads:
            play >> ok() << "getData /controller W" >> controller_is(3)
            assert play.controller.active_controller_id == 3
        else:
            play >> ok() << "getData /controller W" >> controller_is(3)


def test_2_12_zkclient_tells_all_listeners_of_a_new_session_in_the_order_of_its_maps() -> None:
    """As in a recording of 1.0.2, where the controller had resigned before its listeners were
    called: children first, unwatched; a znode is watched although nobody listens any more."""
    with Playbook(profile="1.0") as play:
        listed = [IDS, "/brokers/topics", "/admin/delete_topics"]
        shown = ["/admin/reassign_partitions", "/admin/preferred_replica_election", "/controller"]
        for path in listed:
            play.client.register_child_handler(ChildChangeHandler(path, lambda: None))
        for path in shown:
            play.client.register_change_handler(NodeChangeHandler(path))

        def resign() -> None:
            for path in listed:
                play.client.unregister_child_handler(path)
            for path in shown:
                play.client.unregister_change_handler(path)

        lane = play.zookeeper.sessions[-1].lane
        expired = session_is(SessionState.EXPIRED)
        play >> at_once(session_is(SessionState.DISCONNECTED), expired, lambda _: lane.post(resign))
        play << "closeSession"
        for path in (IDS, "/admin/delete_topics", "/brokers/topics"):
            play << f"exists {path}" >> ok() << f"getChildren {path}" >> children()
        for path in ("/controller", "/admin/preferred_replica_election"):
            play << f"exists {path} W" >> ok() << f"getData {path} W" >> data("")
        play << "exists /admin/reassign_partitions W"
        play.forget()


def test_2_12_up_to_1_0_every_path_is_looked_for_before_it_is_made() -> None:
    with Playbook(profile="0.8.2") as play:
        play >> thread("paths", play.zk.create_top_level_paths()) << "exists /consumers" >> ok()
        play << "exists /brokers/ids" >> no_node << "create /brokers/ids"
        play.forget()


# -- 2.9: notifications ----------------------------------------------------------------------------

LIST = "getChildren /isr_change_notification W"
LEFT = "isr_change_0000000004"


@pytest.mark.parametrize(
    ("how", "purged"),
    [({"profile": "1.1"}, True), (without("notifications-read-again", profile="1.1"), False)],
)
def test_2_9_from_1_1_on_notifications_are_purged_at_fail_over(
    how: dict[str, object], purged: bool
) -> None:
    """H10."""
    with failing_over(how) as play:
        play << "exists /admin/preferred_replica_election W" >> no_node
        play << "exists /admin/reassign_partitions W" >> no_node
        play << "getChildren /log_dir_event_notification W" >> children() << LIST >> children(LEFT)
        if purged:
            play << f"delete /isr_change_notification/{LEFT}"
        else:
            play << "getChildren /brokers/ids W"


@pytest.mark.parametrize(
    ("how", "again"),
    [({"profile": "1.0"}, False), (having("notifications-read-again", "1.0"), True)],
)
def test_2_9_up_to_1_0_the_list_that_came_with_the_event_is_used(
    how: dict[str, object], again: bool
) -> None:
    """H11."""
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}, **how) as play:  # type: ignore[arg-type]
        play >> isr_change() << "exists /isr_change_notification W" >> ok()
        play << LIST >> children(LEFT)
        if again:
            play << LIST >> children(LEFT)
        play << f"getData /isr_change_notification/{LEFT}" >> notification(ORDERS_0)
        play << "getData orders-0" >> state(1, (1, 2), version=6)
        play.forget()


# -- what a broker that starts does ----------------------------------------------------------------

SERVES = [("0.8.2", True), ("0.9.0", True), ("0.10.2", True), ("1.0", False), ("1.1", False)]


@pytest.mark.parametrize(("profile", "answers"), SERVES)
def test_up_to_0_10_a_broker_that_starts_answers_before_it_is_registered(
    profile: str, answers: bool
) -> None:
    """KafkaServer@0.10.2.2 startup: the handlers, then KafkaHealthcheck; @1.0.2 startProcessors is
    last. Its follower, who does not know that it was away, is told that it has no such topic."""
    with Emulated(profile=profile, zookeeper_session_timeout_ms=20_000) as cluster:
        cluster.topic("orders", (2, 3)).now_on()
        registration = cluster.hold(2, "zookeeper", which="/brokers/ids/2")
        cluster.do(Kill(2)).run_ms(200).do(Start(2))
        registration.wait()
        cluster.run_ms(3000)
        told = {delayed.reason for delayed in cluster.seen(events.PartitionDelayed, broker=3)}
        assert ("UNKNOWN_TOPIC_OR_PARTITION" in told) is answers


READS = {
    "getData /cluster/id": ("0.10.2", "0.9.0"),
    "getChildren /config/brokers": ("0.10.2", "0.9.0"),
    "getData /brokers/topics/__transaction_state": ("1.0", "0.10.2"),
    "getData /config/brokers/2": ("1.1", "1.0"),
}


@pytest.mark.parametrize("request_of_a_start", READS)
def test_what_a_start_asks_zookeeper_for_grew_with_the_versions(request_of_a_start: str) -> None:
    """KIP-78, KIP-98, KIP-226; KafkaServer and DynamicConfigManager at both releases."""
    since, before = READS[request_of_a_start]
    for profile, asks in ((since, True), (before, False), ("2.6", True), ("0.8.2", False)):
        with Emulated(1, 2, profile=profile) as cluster:
            asked = [line.replace("getChildren2", "getChildren") for line in cluster.requests(2)]
            assert (request_of_a_start in asked) is asks, profile


@pytest.mark.parametrize(
    ("profile", "is_over"), [("0.9.0", True), ("0.10.2", True), ("1.0", False)]
)
def test_2_12_up_to_0_10_a_start_goes_on_when_its_election_and_fail_over_are_finished(
    profile: str, is_over: bool
) -> None:
    with Emulated(1, profile=profile) as cluster:
        sent = cluster.requests(1)
        fail_over_ends = sent.index("delete /admin/preferred_replica_election")
        goes_on = sent.index("getData /brokers/topics/__consumer_offsets")
        assert (fail_over_ends < goes_on) is is_over
        configurations = sent.index("getChildren /config/changes W")
        assert goes_on < configurations < sent.index("create /brokers/ids/1")


@pytest.mark.parametrize(
    ("how", "reads"),
    [
        ({"profile": "2.4"}, True),
        ({"profile": "2.6"}, False),
        (switched("config-read-for-new-logs", False), True),
        (switched("config-read-for-new-logs", True, "2.4"), False),
    ],
)
def test_3_8_up_to_2_5_a_restarted_broker_reads_the_configuration_of_each_log_again(
    how: dict[str, object], reads: bool
) -> None:
    """KAFKA-9932. Without it the configuration is that of the start."""
    with Emulated(1, 2, **how) as cluster:
        cluster.topic("orders", (1, 2), min_insync_replicas=2).do(Kill(2))
        cluster.run_ms(25_000).now_on().do(Start(2))
        cluster.until_seen(events.BecomesFollower, broker=2)
        assert cluster.hosted(2).min_insync_replicas == 2
        sent = cluster.seen(events.ZkSent, broker=2, path="/config/topics/orders")
        assert any("request-handler" in request.thread for request in sent) is reads


@pytest.mark.parametrize(
    ("profile", "claims"), [("0.10.2", False), ("1.0", True), ("2.8", True), ("3.3", False)]
)
def test_2_12_from_0_11_to_2_8_a_start_claims_a_block_of_producer_ids(
    profile: str, claims: bool
) -> None:
    with Emulated(1, profile=profile) as cluster:
        assert ("setData /latest_producer_id_block" in cluster.requests(1)) is claims


@pytest.mark.parametrize(
    "block",
    [
        b"nonsense",
        encode_producer_id_block(ProducerIdBlock(1, MAX_PRODUCER_ID - 999, MAX_PRODUCER_ID)),
    ],
)
def test_2_12_a_broker_that_can_claim_no_producer_ids_does_not_start(block: bytes) -> None:
    with Emulated(1, 2, 3) as cluster:
        node = cluster.node(1)
        assert node.zk is not None
        write = node.zk.handle_requests([SetData(paths.LATEST_PRODUCER_ID_BLOCK, block, -1)])
        node.context.spawn("writer", write)
        cluster.run_ms(50).do(Kill(2)).run_ms(50).do(Start(2)).run_ms(10_000)
        assert cluster.node(2).process_state == "dead"
        assert not cluster.node(2).started
