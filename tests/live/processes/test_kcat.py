"""kcat with broker processes, as in an interactive session."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.live.processes.cluster import Brokers, three_brokers
from tests.live.processes.kcat import Kcat
from tests.live.processes.situations import move_leader

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    settings = (
        "zookeeper.session.timeout.ms=30000",
        "replica.lag.time.max.ms=30000",
        "auto.leader.rebalance.enable=false",
        "offsets.topic.num.partitions=1",
    )
    with three_brokers(tmp_path_factory.mktemp("brokers"), *settings) as running:
        running.create("orders", (1, 2, 3), (3, 1, 2))
        yield running


def test_lists_leaders_replicas_and_isr_as_each_broker_knows_them(
    kcat: Kcat, brokers: Brokers
) -> None:
    for broker in (1, 2, 3):
        listed = json.loads(kcat(brokers, broker, "-L", "-J"))
        assert sorted(b["id"] for b in listed["brokers"]) == [1, 2, 3]
        assert listed["controllerid"] == brokers.controller(broker)
        (topic,) = listed["topics"]
        found = [(p["leader"], _ids(p["replicas"]), _ids(p["isrs"])) for p in topic["partitions"]]
        assert found == [(1, [1, 2, 3], [1, 2, 3]), (3, [3, 1, 2], [3, 1, 2])]


def _ids(listed: list[dict[str, int]]) -> list[int]:
    return [one["id"] for one in listed]


def test_lists_in_words(kcat: Kcat, brokers: Brokers) -> None:
    listed = kcat(brokers, 1, "-L", "-t", "orders")
    assert "partition 0, leader 1, replicas: 1,2,3, isrs: 1,2,3" in listed


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_produces_and_consumes_up_to_the_high_watermark(
    kcat: Kcat, brokers: Brokers, acks: str
) -> None:
    topic = f"acks-{acks}"
    brokers.create(topic, (2, 3))
    produce = ("-P", "-t", topic, "-p", "0", "-X", f"acks={acks}")
    kcat(brokers, 1, *produce, given="one\ntwo\nthree\n")
    consume = ("-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", "3", "-q")
    assert kcat(brokers, 3, *consume, "-f", "%o %s\n") == "0 one\n1 two\n2 three\n"


def test_asks_for_offsets(kcat: Kcat, brokers: Brokers) -> None:
    brokers.create("offsets", (1,))
    kcat(brokers, 1, "-P", "-t", "offsets", "-p", "0", given="a\nb\n")
    assert kcat(brokers, 1, "-Q", "-t", "offsets:0:-1").split() == ["offsets", "[0]", "offset", "2"]
    assert kcat(brokers, 1, "-Q", "-t", "offsets:0:-2").split() == ["offsets", "[0]", "offset", "0"]


def test_a_consumer_gets_nothing_beyond_the_high_watermark(kcat: Kcat, brokers: Brokers) -> None:
    """The follower, in the ISR, is suspended with one record less than the leader, which returns
    that record to no consumer."""
    brokers.create("held", (2, 3))
    produce = ("-P", "-t", "held", "-p", "0", "-X")
    consume = ("-C", "-t", "held", "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %s\n")
    kcat(brokers, 2, *produce, "acks=all", given="everywhere\n")
    brokers.by_id[3].pause()
    try:
        kcat(brokers, 2, *produce, "acks=1", given="at the leader\n")
        assert kcat(brokers, 2, *consume) == "0 everywhere\n"
        assert kcat(brokers, 2, "-Q", "-t", "held:0:-1").split()[-1] == "1"
    finally:
        brokers.by_id[3].resume()
    both = "0 everywhere\n1 at the leader\n"
    assert brokers.until(lambda: kcat(brokers, 2, *consume), lambda said: said == both)


def test_acks_all_is_refused_while_the_isr_is_too_small(kcat: Kcat, brokers: Brokers) -> None:
    brokers.create("strict", (1,), min_insync_replicas="2")
    produce = ("-P", "-t", "strict", "-p", "0", "-X", "retries=0", "-X")
    code, _, complaints = kcat.complaining(brokers, 1, *produce, "acks=all", given="x\n")
    assert code != 0
    assert "Delivery failed for message: Broker: Not enough in-sync replicas" in complaints
    kcat(brokers, 1, *produce, "acks=1", given="x\n")


TYPED = [f"line {n:4d} {'.' * 90}" for n in range(2000)]
"""kcat reads blocks: some of it waits there until there is more."""


def test_a_session_goes_on_at_the_new_leader_when_the_old_one_says_that_it_is_none(
    kcat: Kcat, brokers: Brokers
) -> None:
    brokers.create("moved", (1, 2))
    words = ("-P", "-t", "moved", "-p", "0", "-X", "acks=all", "-X", "retries=0", "-X", "debug=msg")
    with kcat.typing(brokers, 1, *words) as session:
        assert session.stdin is not None
        session.stdin.write("\n".join(TYPED[:-1]) + "\n")
        session.stdin.flush()
        asked = ("-Q", "-t", "moved:0:-1")
        brokers.until(lambda: kcat(brokers, 1, *asked).split()[-1], lambda end: int(end) > 1000)
        move_leader(brokers, "moved", 1, 2)
        _, complaints = session.communicate(TYPED[-1] + "\n", timeout=60)
    assert session.returncode == 0, complaints
    assert "Broker: Not leader for partition" in complaints
    consume = ("-C", "-t", "moved", "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%s\n")
    assert kcat(brokers, 3, *consume).splitlines() == TYPED


def test_a_group_goes_on_where_it_has_committed(kcat: Kcat, brokers: Brokers) -> None:
    brokers.create("grouped", (1, 2))
    produce = ("-P", "-t", "grouped", "-p", "0")
    kcat(brokers, 1, *produce, given="one\ntwo\n")
    consume = ("-G", "readers", "-q", "-c", "2", "-X", "auto.offset.reset=earliest", "grouped")
    assert kcat(brokers, 1, *consume) == "one\ntwo\n"
    kcat(brokers, 1, *produce, given="three\nfour\n")
    assert kcat(brokers, 2, *consume) == "three\nfour\n"
