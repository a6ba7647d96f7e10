"""Section 2 of the spec: requests to ZooKeeper as real brokers send them."""

from __future__ import annotations

from emulator.runs.play import Run
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.link import CutZookeeperLink, HealZookeeperLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace import events
from tests.spec.emulated import ORDERS_0, Emulated
from zk import paths

STATE = "/brokers/topics/orders/partitions/0/state"


def booting(*brokers: int) -> Emulated:
    """The boot itself is on the trace that the test looks at."""
    cluster = Emulated(*brokers, up=False)
    Run(cluster.world).bring_up()
    return cluster.run_ms(1000)


def test_2_12_the_first_broker_ever_boots_request_by_request() -> None:
    with booting(1) as cluster:
        requests = cluster.requests(1)
    created = [r.removeprefix("create ") for r in requests if r.startswith("create ")]
    top_level = list(dict.fromkeys(p for p in created if p in paths.PERSISTENT_ZK_PATHS))
    assert top_level == list(paths.PERSISTENT_ZK_PATHS)
    after = requests[requests.index("getData /cluster/id") :]
    in_order = [
        "getData /cluster/id",
        "getChildren2 /brokers/topics",
        "getChildren2 /brokers/ids",
        "multi create /brokers/ids/1 setData /brokers/ids/1",
        "exists /controller W",
        "getData /controller W",
        "getData /controller_epoch",
        "create /controller_epoch",
        "multi create /controller setData /controller_epoch",
        "exists /admin/preferred_replica_election W",
        "exists /admin/reassign_partitions W",
        "getChildren2 /log_dir_event_notification W",
        "getChildren2 /isr_change_notification W",
        "getChildren2 /brokers/ids W",
        "getData /brokers/ids/1",
        "getChildren2 /brokers/topics W",
        "exists /brokers/ids/1 W",
        "getChildren2 /admin/delete_topics W",
        "exists /admin/reassign_partitions W",
        "getData /admin/preferred_replica_election W",
        "multi check /controller_epoch delete /admin/preferred_replica_election",
        "exists /controller W",
        "getData /controller W",
        "exists /admin/preferred_replica_election W",
    ]
    positions = []
    for line in in_order:
        start = positions[-1] + 1 if positions else 0
        positions.append(after.index(line, start))
    assert positions == sorted(positions)


def test_2_12_a_missing_parent_is_created_and_then_the_path_again() -> None:
    with booting(1) as cluster:
        requests = cluster.requests(1)
    at = requests.index("create /brokers/ids")
    assert requests[at : at + 3] == [
        "create /brokers/ids",
        "create /brokers",
        "create /brokers/ids",
    ]


def test_2_12_a_later_broker_finds_a_controller_and_watches_it() -> None:
    with booting(1, 2) as cluster:
        requests = cluster.requests(2)
    registered = requests.index("multi create /brokers/ids/2 setData /brokers/ids/2")
    assert requests[registered - 2 : registered] == [
        "getChildren2 /brokers/ids",
        "getData /brokers/ids/1",
    ]
    rest = [r for r in requests[registered:] if "/controller" in r]
    assert rest == ["exists /controller W", "getData /controller W"]


def test_2_12_a_broker_change_lists_reads_and_watches_the_new_one_last() -> None:
    with booting(1, 2) as cluster:
        at = [r for r in cluster.requests(1) if "/brokers/ids" in r]
    assert at[-4:] == [
        "getChildren2 /brokers/ids W",
        "getData /brokers/ids/1 W",
        "getData /brokers/ids/2",
        "exists /brokers/ids/2 W",
    ]


def test_2_12_creating_a_topic_writes_the_configuration_first() -> None:
    with Emulated(1, 2) as cluster:
        cluster.now_on().topic("orders", (1, 2))
        requests = [r for r in cluster.requests(1) if "orders" in r or "/brokers/topics" in r]
    topic = "/brokers/topics/orders"
    assert requests[:9] == [
        f"exists {topic}",
        "setData /config/topics/orders",
        "create /config/topics/orders",
        f"create {topic}",
        "getChildren2 /brokers/topics W",
        f"getData {topic} W",
        f"multi check /controller_epoch create {topic}/partitions",
        f"multi check /controller_epoch create {topic}/partitions/0",
        f"multi check /controller_epoch create {STATE}",
    ]


def test_2_3_a_leaders_write_is_one_plain_set_data_at_the_version_it_knows() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).now_on()
        cluster.do(Pause(3)).send().run_ms(4000)
        (write,) = cluster.seen(events.ZkRequest, op="setData", path=STATE)
        assert (write.broker, write.version) == (1, 0)
        assert cluster.state().leader_and_isr.isr == (1, 2)


def test_1_6_each_successful_write_raises_the_version_by_one_and_keeps_the_leader_epoch() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(Pause(3)).send().run_ms(4000)
        cluster.do(Resume(3)).run_ms(1500)
        assert [(e.zk_version, e.leader_epoch) for e in cluster.seen(events.IsrUpdated)] == [
            (1, 0),
            (2, 0),
        ]


def test_2_2_deleting_a_notification_fires_the_watch_and_costs_one_more_empty_event() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).now_on()
        cluster.do(Pause(3)).send().run_ms(12_000)
        notified = cluster.seen(events.IsrChangeNotified)
        lists = [r for r in cluster.requests(1) if r == "getChildren2 /isr_change_notification W"]
        assert (len(notified), len(lists)) == (1, 2)
        assert len(cluster.seen(events.IsrChangeCleared)) == 1


def test_2_6_notifications_are_deleted_in_a_multi_with_the_controllers_epoch() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).now_on()
        cluster.do(Pause(3)).send().run_ms(12_000)
        (notified,) = cluster.seen(events.IsrChangeNotified)
        assert f"multi check /controller_epoch delete {notified.path}" in cluster.requests(1)


def test_2_11_a_pause_shorter_than_the_session_costs_no_registration() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.now_on().do(Pause(3)).run_ms(3000).do(Resume(3)).run_ms(8000)
        assert not cluster.seen(events.BrokerChange)


def test_2_11_a_pause_longer_than_the_session_removes_the_registration() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.now_on().do(Pause(3)).run_ms(9000)
        assert [e.deleted for e in cluster.seen(events.BrokerChange)] == [(3,)]


def test_2_1_a_request_that_lost_its_connection_is_sent_again_within_the_session() -> None:
    """The leader's link is cut for less than the session; its shrink is written once it is back."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=18_000) as cluster:
        cluster.topic("orders", (2, 1, 3)).now_on()
        cluster.do(CutZookeeperLink(2), Pause(3)).send().run_ms(13_000)
        assert cluster.isr_history() == []
        lost = [e for e in cluster.seen(events.ZkReply, broker=2, op="setData") if e.code == -4]
        assert lost
        cluster.do(HealZookeeperLink(2)).run_ms(4000)
        assert cluster.isr_history() == [(2, 1)]
        assert cluster.state().leader_and_isr.isr == (2, 1)


def test_1_5_a_topic_that_exists_already_is_refused() -> None:
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2)).now_on()
        cluster.do(CreateTopic("orders", ((2, 1),))).run_ms(2000)
        assert [e.result for e in cluster.seen(events.ActionReturned)] == ["TOPIC_ALREADY_EXISTS"]
        assert cluster.state(ORDERS_0).leader_and_isr.leader == 1
