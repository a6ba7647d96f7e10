"""Actions as they are typed, and as they are written so that a scenario reads them again."""

from __future__ import annotations

import pytest

from emulator.scenario.actions.admin import (
    AddPartitions,
    BrokerConfig,
    CreateTopic,
    DeleteRecords,
    PreferredElection,
    Reassign,
    TopicConfig,
)
from emulator.scenario.actions.base import Action, actions
from emulator.scenario.actions.clients import Consume, Produce, ProduceStop, Send
from emulator.scenario.actions.life import Crash, Kill, Start, Terminate
from emulator.scenario.actions.link import CutLink, DelayLink, HealLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.scenario.actions.slow import SlowDisk, SlowFollower
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.schema import Step
from emulator.scenario.typed import cluster_of, read_typed, usage
from emulator.scenario.written import write_scenario

SCENARIO = """\
about: >
  Something to play with.
cluster: {brokers: [1, 2, 3], first: 3, config: {replica.lag.time.max.ms: 2000}}
topics: {orders: {partitions: [[1, 2, 3], [2, 3, 1]]}, a-b-0: {partitions: [[1]]}}
workload: [{produce: orders, rate: 20, until: 9s}]
faults: [{at: 1s, pause: {broker: 2}, for: 3s}]
run: 10s
expect: ["notifications: 1"]
"""
TYPED: dict[str, Action] = {
    "pause 2": Pause(2),
    "pause zookeeper": Pause(None, "zookeeper"),
    "resume broker=2": Resume(2),
    "kill 1": Kill(1),
    "crash 1": Crash(1),
    "terminate 1": Terminate(1),
    "start 1": Start(1),
    "cut 1 zookeeper": CutLink(1, "zookeeper"),
    "cut_link 1 3": CutLink(1, 3),
    "heal_link 1 peer=3": HealLink(1, 3),
    "delay 1 3 50": DelayLink(1, 3, 50),
    "delay 1 3 50ms": DelayLink(1, 3, 50),
    "delay_link 1 3 delay_ms=1.5s": DelayLink(1, 3, 1500),
    "stop 1": Terminate(1),
    "slow_disk 1 5": SlowDisk(1, 5),
    "slow_follower 2 bytes_per_s=1000": SlowFollower(2, 1000),
    "produce orders-1": Send("orders", (1,)),
    "produce orders-0 5": Send("orders", (0,), 5),
    "produce orders 5 acks=all": Send("orders", (0, 1), 5, "all") ,
    "produce orders partitions=0,1 records=5": Send("orders", (0, 1), 5),
    "produce orders-1 rate=20.5": Produce("orders", (1,), 20.5),
    "produce orders rate=20 acks=-1": Produce("orders", (0, 1), 20, "all"),
    "produce a-b-0 rate=1": Produce("a-b-0", (0,), 1),
    "produce_stop orders": ProduceStop("orders"),
    "consume orders-1": Consume("orders", (1,)),
    "create_topic clicks 1,2 2,3": CreateTopic("clicks", ((1, 2), (2, 3))),
    "create_topic clicks [[1,2]] min.insync.replicas=2": CreateTopic(
        "clicks", ((1, 2),), {"min.insync.replicas": "2"}
    ),
    "delete_records orders-0 100": DeleteRecords("orders", (0,), 100),
    "delete_records orders": DeleteRecords("orders", (0,)),
    "add_partitions orders 2,3": AddPartitions("orders", ((2, 3),)),
    "reassign orders-1 3,1": Reassign("orders", 1, (3, 1)),
    "reassign orders-1": Reassign("orders", 1),
    "preferred_election": PreferredElection(),
    "preferred_election orders-1": PreferredElection((("orders", 1),)),
    "preferred_election [[orders,0],[orders,1]]": PreferredElection(
        (("orders", 0), ("orders", 1))
    ),
    "topic_config orders min.insync.replicas=2": TopicConfig(
        "orders", {"min.insync.replicas": "2"}
    ),
    "broker_config 1 leader.replication.throttled.rate=9": BrokerConfig(
        1, {"leader.replication.throttled.rate": "9"}
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> LoadedScenario:
    return loads(SCENARIO, "tried")


@pytest.mark.parametrize("line", TYPED)
def test_a_line_is_the_action_that_it_says(line: str, loaded: LoadedScenario) -> None:
    assert read_typed(line.split(), cluster_of(loaded)) == TYPED[line]


def test_what_is_written_is_read_again_as_it_was(loaded: LoadedScenario) -> None:
    steps = [Step(n * 100_001, one, fault=True) for n, one in enumerate(TYPED.values())]
    text = write_scenario(loaded, steps, 7_000_001, settings={}, head=["by hand"])
    again = loads(text, "tried")
    assert [step for step in again.steps if step.fault] == steps
    assert text.startswith("# by hand\n")


def test_the_cluster_its_topics_and_its_workload_are_kept_and_nothing_else(
    loaded: LoadedScenario,
) -> None:
    given = {"num.io.threads": "3"}
    again = loads(write_scenario(loaded, (), 4_000_000, settings=given), "tried")
    assert (again.about, again.boots, again.profile) == (loaded.about, loaded.boots, "2.6")
    assert again.settings == {**loaded.settings, **given}
    assert again.steps == tuple(step for step in loaded.steps if not step.fault)
    assert again.expectations == ()
    assert again.duration_us == 9_000_000, "as long as its workload"


def test_a_topic_that_was_made_by_hand_is_known_from_then_on(loaded: LoadedScenario) -> None:
    done = [read_typed(["create_topic", "clicks", "1,2"], cluster_of(loaded))]
    more = read_typed(["add_partitions", "clicks", "2,3"], cluster_of(loaded, done))
    last = read_typed(["produce", "clicks-1"], cluster_of(loaded, [*done, more]))
    assert last == Send("clicks", (1,))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pause 9", "broker: there is no broker 9; the cluster has 1, 2, 3"),
        ("pause", "pause needs one of broker, server"),
        ("pause two", "broker: expected a whole number, not 'two'"),
        ("pause 2 zookeeper more", "more: too much; pause [BROKER] [SERVER]"),
        ("cut 1", "cut_link needs peer"),
        ("cut 1 1", "peer: a broker has no link to itself"),
        ("produce clicks-0 5", "topic: there is no topic clicks; allowed: a-b-0, orders"),
        ("produce orders-7", "partitions: orders has no partition 7; it has 0 to 1"),
        ("produce orders-0 -5", "records: at least 0, not -5"),
        ("produce orders rate=fast", "rate: expected a number, not 'fast'"),
        ("create_topic clicks 1,9", "there is no broker 9"),
        ("topic_config orders colour=red", "config.colour: there is no such key"),
        ("puase 2", "there is no puase; did you mean pause?"),
        ("pause 2}", "broker: expected a whole number, not '2}'"),
        ("reassign orders-0 [1,2", "invalid YAML"),
    ],
)
def test_a_mistake_is_said_with_the_field_that_it_is_in(
    line: str, said: str, loaded: LoadedScenario
) -> None:
    with pytest.raises(UserError) as caught:
        read_typed(line.split(), cluster_of(loaded))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_action_says_how_it_is_typed() -> None:
    told = {name: usage(name) for name in actions()}
    assert told["delay_link"] == "delay_link BROKER PEER DELAY_MS"
    assert told["pause"] == "pause [BROKER] [SERVER]"
    assert told["delete_records"] == "delete_records TOPIC[-N] [BEFORE]"
    assert told["reassign"].startswith("reassign TOPIC PARTITION [REPLICAS]")
    assert all(text.startswith(name) for name, text in told.items())
