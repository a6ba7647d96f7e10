"""Registration, retries, and the rules of the client (spec §2.1, §2.2, §2.8, §2.10)."""

from __future__ import annotations

import pytest

from tests.interaction.controlling import CHANGED, CHILDREN, CREATED, DELETED
from tests.interaction.playbook import (
    Playbook,
    answer,
    at_once,
    children,
    data,
    lost,
    multi_failed,
    multi_ok,
    no_node,
    ok,
    reply,
    session_is,
    thread,
    watch,
)
from zk.client.codec_admin import BrokerInfo, EndPoint
from zk.errors import Code
from zk.ops import GetChildren, GetData, Reply, SessionState, SetData

INFO = BrokerInfo((EndPoint("PLAINTEXT", "PLAINTEXT", "host-1", 9091),))
REGISTER = "[create ephemeral /brokers/ids/1, set /brokers/ids/1 at v0]"
READ = "getData /brokers/ids/1"
EXISTS = multi_failed(Code.NODE_EXISTS, Code.RUNTIME_INCONSISTENCY)
FIRST, SECOND, STRANGER = 0x100, 0x101, 0x777

MY_SESSION_EXPIRED = at_once(
    session_is(SessionState.DISCONNECTED), session_is(SessionState.EXPIRED)
)


def register(play: Playbook) -> Playbook:
    return play >> thread("registration", play.zk.register_broker(1, INFO)) << REGISTER


# -- checkedEphemeralCreate (§2.8) -----------------------------------------------------------------


def test_the_broker_epoch_is_the_czxid_of_the_registration() -> None:
    with Playbook() as play:
        register(play) >> multi_ok(version=1, czxid=42) << "registration: 42"


def test_a_node_of_the_present_session_is_the_own_one_whose_reply_was_lost() -> None:
    with Playbook() as play:
        (
            register(play)
            >> lost
            << REGISTER
            >> EXISTS
            << READ
            >> data("", owner=FIRST, czxid=42)
            << "registration: 42"
        )


def test_a_node_of_a_stranger_ends_the_start() -> None:
    with Playbook() as play:
        (
            register(play)
            >> EXISTS
            << READ
            >> data("", owner=STRANGER)
            << "registration: ZooKeeperError NODE_EXISTS for /brokers/ids/1"
        )


def test_a_node_that_went_away_meanwhile_is_created_again() -> None:
    with Playbook() as play:
        (
            register(play)
            >> EXISTS
            << READ
            >> no_node
            << REGISTER
            >> multi_ok(version=1, czxid=43)
            << "registration: 43"
        )


def registered_and_expired(play: Playbook) -> Playbook:
    """Registered in the first session, which has expired; the second is connected."""
    (
        register(play)
        >> multi_ok(version=1, czxid=42)
        << "registration: 42"
        >> MY_SESSION_EXPIRED
        << "closeSession"
    )
    assert play.client.session_id == SECOND
    return play


def test_the_node_of_ones_own_expired_session_is_deleted_and_made_anew() -> None:
    """ZooKeeper may keep it for a while (ZOOKEEPER-2985, KAFKA-7165)."""
    with Playbook() as play:
        (
            register(registered_and_expired(play))
            >> EXISTS
            << READ
            >> data("", owner=FIRST)
            << "delete /brokers/ids/1"
            >> ok()
            << REGISTER
            >> multi_ok(version=1, czxid=77)
            << "registration: 77"
        )


def test_that_node_may_vanish_before_the_delete() -> None:
    with Playbook() as play:
        (
            register(registered_and_expired(play))
            >> EXISTS
            << READ
            >> data("", owner=FIRST)
            << "delete /brokers/ids/1"
            >> no_node
            << REGISTER
            >> multi_ok(version=1, czxid=77)
            << "registration: 77"
        )


def test_a_delete_that_fails_otherwise_ends_the_registration() -> None:
    with Playbook() as play:
        (
            register(registered_and_expired(play))
            >> EXISTS
            << READ
            >> data("", owner=FIRST)
            << "delete /brokers/ids/1"
            >> reply(Code.NO_AUTH)
            << "registration: ZooKeeperError NO_AUTH for /brokers/ids/1"
        )


def test_after_an_expiry_too_a_strangers_node_is_left_alone() -> None:
    with Playbook() as play:
        (
            register(registered_and_expired(play))
            >> EXISTS
            << READ
            >> data("", owner=STRANGER)
            << "registration: ZooKeeperError NODE_EXISTS for /brokers/ids/1"
        )


# -- retries (§2.1) --------------------------------------------------------------------------------


def test_only_what_lost_its_connection_is_sent_again_after_the_reconnection() -> None:
    with Playbook() as play:
        batch = play.zk.batch([GetData("/a"), GetData("/b"), GetData("/c")])
        (
            play
            >> thread("a batch", batch)
            << "getData /a"
            << "getData /b"
            << "getData /c"
            >> session_is(SessionState.DISCONNECTED)
            >> no_node
            >> lost
            >> lost
            >> session_is(SessionState.CONNECTED)
            << "getData /b"
            << "getData /c"
            >> ok()
            >> no_node
        )
        answers = play.said.popleft()
        assert [code in answers for code in ("Code.OK", "Code.NO_NODE", "CONNECTION_LOSS")] == [
            True,
            True,
            False,
        ]


def test_until_the_next_attempt_to_connect_the_client_says_that_it_is_connected() -> None:
    """ZooKeeper.getState: what was lost is sent again at once, and waits in the client."""
    with Playbook() as play:
        (
            play
            >> thread("a write", play.zk.batch([SetData("/a", b"", 0)]))
            << "set /a at v0"
            >> lost
            << "set /a at v0"
            >> session_is(SessionState.DISCONNECTED)
            >> lost
            >> session_is(SessionState.CONNECTED)
            << "set /a at v0"
        )


def test_an_answer_other_than_connection_loss_is_never_retried() -> None:
    with Playbook() as play:
        play >> thread("a write", play.zk.batch([SetData("/a", b"", 0)])) << "set /a at v0"
        play >> reply(Code.OPERATION_TIMEOUT)
        assert "OPERATION_TIMEOUT" in play.said.popleft()


def test_a_request_is_not_retried_under_another_session() -> None:
    """KAFKA-2729: it would be written by a broker with a new identity."""
    with Playbook() as play:
        (
            play
            >> thread("a write", play.zk.batch([SetData("/a", b"", 0)]))
            << "set /a at v0"
            >> session_is(SessionState.DISCONNECTED)
            >> lost
            >> session_is(SessionState.EXPIRED)
            << "a write: SessionExpired SESSION_EXPIRED"
            << "closeSession"
        )
        assert play.client.session_id == SECOND, "the next session is there"


def test_what_the_expired_session_itself_answers_is_handed_on() -> None:
    with Playbook() as play:
        (
            play
            >> thread("a read", play.zk.get_children("/a"))
            << "getChildren /a"
            >> reply(Code.SESSION_EXPIRED)
            << "a read: ZooKeeperError SESSION_EXPIRED for /a"
        )


def test_requests_wait_while_a_new_session_is_being_made() -> None:
    """initializationLock: the hooks before it run first (§2.10)."""
    with Playbook() as play:
        asked: list[str] = []

        class Hook:
            async def before_initializing_session(self) -> None:
                asked.append(f"before, session {play.client.session_id:#x}")

            async def after_initializing_session(self) -> None:
                asked.append(f"after, session {play.client.session_id:#x}")

        play.client.register_state_handler(Hook())
        play >> MY_SESSION_EXPIRED << "closeSession"
        assert asked == ["before, session 0x100", "after, session 0x101"]


def test_callbacks_of_the_session_before_are_dropped() -> None:
    with Playbook() as play:
        first = play.zookeeper.sessions[0].listener
        assert first is not None
        play >> MY_SESSION_EXPIRED << "closeSession"
        first.on_state(SessionState.EXPIRED)
        play.settle()
        assert len(play.zookeeper.sessions) == 2, "no third session for the first one's sake"


def test_at_most_so_many_requests_are_on_their_way() -> None:
    with Playbook(zookeeper_max_in_flight_requests=2) as play:
        requests = [GetData(f"/{n}") for n in range(4)]
        (
            play
            >> thread("a batch", play.zk.batch(requests))
            << "getData /0"
            << "getData /1"
            >> ok()
            << "getData /2"
            >> ok()
            << "getData /3"
            >> ok()
            >> ok()
        )
        assert play.said.popleft().count("Code.OK") == 4


# -- watches (§2.2) --------------------------------------------------------------------------------


class Handler:
    """Runs what it receives."""

    def __init__(self, play: Playbook, path: str) -> None:
        self.path, self._say = path, play.say

    def handle_creation(self) -> None:
        self._say("created")

    def handle_deletion(self) -> None:
        self._say("deleted")

    def handle_data_change(self) -> None:
        self._say("changed")

    def handle_child_change(self) -> None:
        self._say("children changed")


def test_a_read_watches_exactly_while_a_handler_for_its_path_is_registered() -> None:
    with Playbook() as play:
        play >> thread("1", play.zk.path_exists("/a")) << "exists /a" >> ok() << "1: True"
        play.client.register_change_handler(Handler(play, "/a"))
        play >> thread("2", play.zk.path_exists("/a")) << "exists /a W" >> no_node << "2: False"
        play >> thread("3", play.zk.path_exists("/b")) << "exists /b" >> no_node << "3: False"
        play.client.unregister_change_handler("/a")
        play >> thread("4", play.zk.path_exists("/a")) << "exists /a" >> ok() << "4: True"


def test_a_list_watches_only_where_it_was_asked_for_as_well() -> None:
    with Playbook() as play:
        play.client.register_child_handler(Handler(play, "/a"))
        with_watch, without = GetChildren("/a", watch=True), GetChildren("/a")
        play >> thread("1", play.zk.one(with_watch)) << "getChildren /a W" >> children()
        play.forget()
        play >> thread("2", play.zk.one(without)) << "getChildren /a" >> children()
        play.forget()
        elsewhere = GetChildren("/b", watch=True)
        play >> thread("3", play.zk.one(elsewhere)) << "getChildren /b" >> children()
        play.forget()


@pytest.mark.parametrize(
    ("kind", "heard"),
    [
        (CREATED, "created"),
        (DELETED, "deleted"),
        (CHANGED, "changed"),
        (CHILDREN, "children changed"),
    ],
)
def test_a_fired_watch_reaches_the_handler_of_its_path(kind: object, heard: str) -> None:
    with Playbook() as play:
        handler = Handler(play, "/a")
        play.client.register_change_handler(handler)
        play.client.register_child_handler(handler)
        play >> watch(kind, "/a") << heard >> watch(kind, "/b")
        play.client.unregister_change_handler("/a")
        play.client.unregister_child_handler("/a")
        play >> watch(kind, "/a")


# -- paths and configurations ----------------------------------------------------------------------


def test_a_persistent_path_is_made_with_its_parents_and_may_be_there_already() -> None:
    with Playbook() as play:
        (
            play
            >> thread("1", play.zk.make_sure_persistent_path_exists("/a/b/c"))
            << "create /a/b/c"
            >> no_node
            << "create /a/b"
            >> no_node
            << "create /a"
            >> ok()
            << "create /a/b"
            >> reply(Code.NODE_EXISTS)
            << "create /a/b/c"
            >> ok()
            << "1: done"
            >> thread("2", play.zk.make_sure_persistent_path_exists("/a"))
            << "create /a"
            >> reply(Code.NODE_EXISTS)
            << "2: done"
        )


def test_a_configuration_is_written_and_created_only_where_it_is_missing() -> None:
    with Playbook() as play:
        write = play.zk.set_or_create_entity_configs("topics", "orders", {"a": "1"})
        (
            play
            >> thread("config", write)
            << "set /config/topics/orders at v-1"
            >> no_node
            << "create /config/topics/orders"
            >> ok()
            << "config: done"
        )


def test_garbage_in_a_configuration_is_reported_and_counts_as_none() -> None:
    with Playbook() as play:
        (
            play
            >> thread("config", play.zk.get_entity_configs("topics", "orders"))
            << "getData /config/topics/orders"
            >> answer(Reply(Code.OK, data=b"\xff\xfe", stat=None))
            << "malformed /config/topics/orders"
            << "config: {}"
        )


def test_a_client_that_was_closed_lets_nobody_try_again() -> None:
    """Its session still counts as connected until the server has answered."""
    with Playbook() as play:
        register(play)
        play.client.close()
        play << "closeSession" >> lost << "registration: SessionExpired SESSION_EXPIRED"
