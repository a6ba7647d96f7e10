"""A scenario file is read as it was meant, and every mistake in one is pointed at."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.scenario import shipped
from emulator.scenario.actions import admin, clients, drop_connection, link, pause, stop_zookeeper
from emulator.scenario.actions.base import actions
from emulator.scenario.errors import ScenarioError, UserError
from emulator.scenario.load import LoadedScenario, load, loads
from emulator.scenario.schema import Step
from emulator.scenario.units import duration_us, show_us

FULL = """\
about: A follower is paused past the lag and comes back.
profile: "2.6"
cluster:
  brokers: 3
  first: 3
  config: {replica.lag.time.max.ms: 2000}
  broker_config: {2: {num.io.threads: 4}}
  zookeeper: {tick: 200ms}
topics:
  orders: {partitions: [[1, 2, 3]], config: {min.insync.replicas: 2}}
  bills: {partitions: 4, replication: 2}
workload:
  - {produce: orders, partitions: [0], rate: 20, acks: 1, from: 2s, until: 25s}
  - {consume: bills, from: 3s}
faults:
  - {at: 5s, pause: {broker: 2}, for: 6s}
  - {at: 12s, cut_link: {broker: 1, peer: 2}, for: 3s}
  - {at: 13s, cut_zookeeper_link: 1}
run: 30s
expect:
  - isr of orders-0 becomes [1, 3]
  - notifications: 2
race_free: true
kernel_late: 50ms
"""


def read(text: str, *sets: str) -> LoadedScenario:
    return loads(text, "tried", "tried.yaml", sets)


def problem(text: str, *sets: str) -> str:
    with pytest.raises(UserError) as caught:
        read(text, *sets)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert old in FULL
    return FULL.replace(old, new)


def test_everything_is_on_one_time_line() -> None:
    scenario = read(FULL)
    assert [(step.at_us / 1e6, step.action, step.fault) for step in scenario.steps] == [
        (0, admin.CreateTopic("orders", ((1, 2, 3),), {"min.insync.replicas": "2"}), False),
        (0, admin.CreateTopic("bills", num_partitions=4, replication_factor=2), False),
        (2, clients.Produce("orders", (0,), 20.0, "1"), False),
        (3, clients.Consume("bills", (0, 1, 2, 3)), False),
        (5, pause.Pause(broker=2), True),
        (11, pause.Resume(broker=2), True),
        (12, link.CutLink(1, 2), True),
        (13, link.CutZookeeperLink(1), True),
        (15, link.HealLink(1, 2), True),
        (25, clients.ProduceStop("orders", "1"), False),
    ]


def test_the_cluster_is_as_described() -> None:
    scenario = read(FULL)
    assert [boot.broker for boot in scenario.boots] == [3, 1, 2]
    assert scenario.settings == {"replica.lag.time.max.ms": "2000"}
    assert scenario.broker_settings == {2: {"num.io.threads": "4"}}
    assert scenario.zookeeper.tick_time_ms == 200
    assert scenario.duration_us == 30_000_000
    assert scenario.kernel_late_ms == 50
    assert scenario.race_free
    assert [e.text for e in scenario.expectations] == [
        "isr of orders-0 becomes [1, 3]",
        "notifications: 2",
    ]


def test_the_documented_scenario_is_one() -> None:
    documented = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text()
    scenario = read(documented.split("```yaml\n")[1].split("```")[0])
    assert len(scenario.steps) == 9
    assert scenario.kernel_late_ms == 200


def test_little_needs_to_be_said() -> None:
    scenario = read("run: 10s")
    assert [boot.broker for boot in scenario.boots] == [1, 2, 3]
    assert (scenario.profile, scenario.steps, scenario.expectations) == ("2.6", (), ())


def test_what_is_repeated_is_healed_each_time() -> None:
    scenario = read(
        "run: 20s\nfaults: [{at: 5s, pause: {broker: 2}, for: 1s, every: 4s, times: 3}]"
    )
    assert [step.at_us // 1_000_000 for step in scenario.steps] == [5, 6, 9, 10, 13, 14]


def test_a_producer_that_says_nothing_begins_when_topics_are_settled_and_writes_everywhere() -> (
    None
):
    scenario = read("run: 9s\ntopics: {a: {partitions: 2}}\nworkload: [{produce: a, rate: 1}]")
    assert scenario.steps[-1] == Step(2_000_000, clients.Produce("a", (0, 1), 1.0))


def test_what_has_no_parameters_is_written_without() -> None:
    scenario = read("run: 9s\nfaults: [{at: 5s, stop_zookeeper: , for: 1s}]")
    actions = [step.action for step in scenario.steps]
    assert actions == [stop_zookeeper.StopZookeeper(), stop_zookeeper.StartZookeeper()]


def test_what_is_one_of_several_words_may_be_left_out() -> None:
    drop = "drop_connection: {broker: 2, when: after}"
    scenario = read(f"run: 9s\nfaults: [{{at: 5s, {drop}, for: 1s}}]")
    dropped, kept = (step.action for step in scenario.steps)
    assert dropped == drop_connection.DropConnection(2, "after", None, 1)
    assert kept == drop_connection.DropConnection(2, "after", None, 0)


def test_a_topic_may_be_created_later_and_used_then() -> None:
    scenario = read(
        "run: 9s\n"
        "workload:\n"
        "  - {at: 3s, create_topic: late, assignment: [[1, 2]]}\n"
        "  - {at: 4s, send: late, records: 3}\n"
    )
    assert scenario.steps[-1].action == clients.Send("late", (0,), 3)


def test_a_setting_of_the_command_line_wins_everywhere() -> None:
    scenario = read(FULL, "num.io.threads=2", "replica.lag.time.max.ms=900")
    assert scenario.settings == {"num.io.threads": "2", "replica.lag.time.max.ms": "900"}
    assert scenario.broker_settings == {2: {}}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "workload:",
            "workloads:",
            "tried.yaml:12: workloads: there is no such key; did you mean workload?",
        ),
        (
            "  brokers: 3",
            "  broker: 3",
            "tried.yaml:4: cluster.broker: there is no such key; did you mean brokers?",
        ),
        (
            "first: 3",
            "first: 9",
            "tried.yaml:5: cluster.first: there is no broker 9; the cluster has 1, 2, 3",
        ),
        ("brokers: 3", "brokers: many", "cluster.brokers: expected a whole number, not 'many'"),
        ("brokers: 3", "brokers: 0", "cluster.brokers: at least 1, not 0"),
        ("brokers: 3", "brokers: [1, 2, 2, 3]", "cluster.brokers[2]: broker 2 is there twice"),
        ("brokers: 3", "brokers: 100000", "at most 1000 brokers"),
        (
            "pause: {broker: 2}",
            "pause: {broker: 7}",
            "tried.yaml:16: faults[0].pause.broker: there is no broker 7",
        ),
        ("pause: {broker: 2}", "pause: {}", "faults[0].pause: pause needs one of broker, server"),
        ("pause: {broker: 2}", "pause: {server: kafka}", "the only server is zookeeper, not kafka"),
        ("pause: {broker: 2}", "pause: {broker: two}", "expected a whole number, not 'two'"),
        (
            "pause: {broker: 2}",
            "paus: {broker: 2}",
            "faults[0].paus: there is no paus; did you mean pause?",
        ),
        ("pause: {broker: 2}", "pause: {brokr: 2}", "there is no such key; did you mean broker?"),
        ("pause: {broker: 2}", "pause: {broker: 2}, resume: {broker: 2}", "one thing at a time"),
        (
            "pause: {broker: 2}",
            "drop_connection: {broker: 2, when: never}",
            "expected one of before, after, not 'never'",
        ),
        (
            "pause: {broker: 2}",
            "link_latency: {broker: 2, peer: 1, low_ms: 5, typical_ms: 2, high_ms: 9}",
            "expected low_ms <= typical_ms <= high_ms",
        ),
        (
            "pause: {broker: 2}",
            "lossy_link: {broker: 2, peer: 1, loss: 1}",
            "loss is below 1; for a link that is dead, cut_link",
        ),
        (
            "pause: {broker: 2}",
            "slow_link: {broker: 2, peer: zookeeper, bytes_per_s: 1}",
            "expected a whole number, not 'zookeeper'",
        ),
        (
            "pause: {broker: 2}",
            "break_connection: {broker: 2, peer: 1, when: before, late_ms: 1}",
            "a request that never arrives is not late",
        ),
        ("pause: {broker: 2}", "stop_zookeeper: now", "the only server is zookeeper, not now"),
        ("pause: {broker: 2}", "expire_session: 2", "nothing undoes expire_session"),
        ("peer: 2", "peer: 1", "a broker has no link to itself"),
        ("peer: 2", "peer: zoo", "'zoo' is neither zookeeper nor a broker"),
        ("{at: 5s, pause", "{pause", "faults[0]: at is missing"),
        ("{at: 5s, pause", "{at: 31s, pause", "pause at 31 s is beyond the run: 30 s"),
        ("for: 6s", "for: 26s", "faults[0].for: resume at 31 s is beyond the run: 30 s"),
        ("for: 6s", "for: 6", "'6' is not a duration: write 5s, 500ms, 1.5min"),
        ("for: 6s", "for: 6s, until: 9s", "for or until, not both"),
        ("for: 6s", "until: 4s", "ends at 4 s, but it begins at 5 s"),
        ("for: 6s", "every: 6s", "every and times go together"),
        ("for: 6s", "for: 6s, every: 5s, times: 2", "lasts longer than every 5 s"),
        ("rate: 20", "rate: fast", "workload[0].rate: expected a number, not 'fast'"),
        ("rate: 20", "rate: 0", "workload[0].rate: more than 0"),
        ("rate: 20, ", "", "produce needs rate"),
        ("acks: 1", "acks: some", "acks is 0, 1, all or (in Kafka 0.8) a number up to 1000"),
        ("acks: 1", "ack: 1", "produce has no ack; did you mean acks?"),
        ("produce: orders", "produce: order", "there is no topic order; did you mean orders?"),
        ("partitions: [0]", "partitions: [1]", "orders has no partition 1; it has 0 to 0"),
        ("consume: bills, from: 3s", "consume: bills, until: 3s", "nothing undoes consume"),
        ("replication: 2", "replication: 4", "4 is above the number of brokers, 3"),
        ("[[1, 2, 3]]", "[[1, 2, 4]]", "topics.orders.partitions[0][2]: there is no broker 4"),
        ("[[1, 2, 3]]", "[[1, 2, 2]]", "each broker once"),
        ("[[1, 2, 3]]", "[[1, 2, 3], [1, 2]]", "all partitions of a topic have the same number of"),
        ("orders: {", "or ders: {", "a topic's name has letters"),
        (
            "replica.lag.time.max.ms",
            "replica.lag.time.max",
            "did you mean replica.lag.time.max.ms?",
        ),
        (
            "replica.lag.time.max.ms: 2000",
            "replica.lag.time.max.ms: soon",
            "tried.yaml:6: cluster.config.replica.lag.time.max.ms: 'soon' is not a whole number",
        ),
        ("replica.lag.time.max.ms: 2000", "replica.lag.time.max.ms: 100", "must not be above"),
        ("{2: {num.io", "{5: {num.io", "there is no broker 5"),
        ("min.insync.replicas: 2", "min.insync.replica: 2", "did you mean min.insync.replicas?"),
        ("min.insync.replicas: 2", "min.insync.replicas: two", "Not a number of type INT"),
        ("tick: 200ms", "tick: 200", "'200' is not a duration"),
        ("tick: 200ms", "tik: 200ms", "did you mean tick?"),
        ("run: 30s", "run: forever", "'forever' is not a duration"),
        ("run: 30s\n", "", "run: is missing: how long, as in 30s"),
        ("run: 30s", "run: 0", "run: more than 0"),
        ("run: 30s", "run: 30s\nrun: 31s", "tried.yaml:20: run: is there twice, first on line 19"),
        ('profile: "2.6"', "profile: 9.9", "there is no profile 9.9"),
        ("race_free: true", "race_free: perhaps", "expected true or false, not 'perhaps'"),
        (
            "becomes [1, 3]",
            "become [1, 3]",
            "expect[0]: 'isr of orders-0 become [1, 3]' is no expectation; nearest",
        ),
        ("of orders-0 becomes", "of orders-1 becomes", "expect[0]: orders has no partition 1"),
        ("of orders-0 becomes", "of books-0 becomes", "expect[0]: there is no topic books"),
        ("becomes [1, 3]", "becomes [1, 4]", "expect[0]: there is no broker 4"),
        ("notifications: 2", "notification: 2", "'notification: 2' is no expectation"),
        ("notifications: 2", "{notifications: 2, isr changes: 1}", "one sentence in each line"),
        ("  brokers: 3", "  brokers: [1, 2", "tried.yaml:5: invalid YAML"),
        ("  brokers: 3", "  brokers: *three", "aliases are not read here"),
        ("  brokers: 3", "  brokers: !!int 3", "tags are not read here"),
        # Python's own error for 5,000 digits came through (found by tests/fuzz_decoders).
        ("orders-0 becomes", f"orders-{'9' * 5000} becomes", "a number of more than 300 digits"),
        ("run: ", f"run: {'9' * 5000}", "a number of more than 300 digits"),
        ("topics:\n", "topics: 5\nx:\n", "there is no such key"),
        ("workload:\n", "workload: {a: 1}\nexpect:\n", "expect: is there twice"),
    ],
)
def test_a_mistake_is_pointed_at(old: str, new: str, said: str) -> None:
    assert said in problem(changed(old, new))


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("replica.lag.time.max.ms", "write KEY=VALUE"),
        ("replica.lag.time.max=5", "did you mean replica.lag.time.max.ms?"),
        ("num.io.threads=many", "--set num.io.threads=many: num.io.threads: 'many' is not a whole"),
        ("num.io.threads=0", "must be at least 1"),
    ],
)
def test_a_bad_setting_of_the_command_line_is_named(pair: str, said: str) -> None:
    assert said in problem(FULL, pair)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("just words", "expected a mapping, not 'just words'"),
        ("- 1\n- 2", "expected a mapping, not a list"),
        ("a: [", "invalid YAML"),
        ("\tx: 1", "invalid YAML"),
        ("a: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ("run: 5s\ntopics: " + "[" * 30 + "]" * 30, "nested too deeply"),
        ("run: \x00", "invalid YAML"),
        ("? [a]\n: 1", "a key is a plain word"),
    ],
)
def test_what_is_no_scenario_at_all_is_said_in_one_line(text: str, said: str) -> None:
    assert said in problem(text)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"run: \xff\xfe")
    with pytest.raises(UserError, match="no UTF-8 text"):
        load(path)


def test_every_action_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text()
    assert [name for name in actions() if f"`{name}" not in text] == []


def test_every_shipped_scenario_is_read_and_takes_something_away_to_be_tested() -> None:
    scenarios = [load(path) for path in shipped.shipped().values()]
    assert len(scenarios) >= 8
    for scenario in scenarios:
        assert scenario.about
        assert scenario.expectations, scenario.name
        assert any(step.fault for step in scenario.steps), scenario.name


def test_a_scenario_is_found_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("run: 5s")
    assert shipped.find(str(tmp_path / "mine.yaml")).name == "mine.yaml"
    assert shipped.find("brief-lag").is_file()
    with pytest.raises(UserError, match="did you mean brief-lag"):
        shipped.find("brief-leg")
    with pytest.raises(UserError, match="there is no such file"):
        shipped.find("there/is/none.yaml")
    with pytest.raises(UserError, match="is a directory"):
        shipped.find(str(tmp_path))


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_fall(text: str) -> None:
    with suppress(ScenarioError):
        loads(text, "any")


@given(st.integers(min_value=0, max_value=10**12))
def test_a_time_is_read_as_it_is_shown(us: int) -> None:
    shown = show_us(us)
    assert abs(duration_us(shown) - us) < (1000 if us >= 1_000_000 else 1)


def test_a_client_setting_that_is_not_known_is_an_error() -> None:
    text = "topics: {t: {partitions: [[1]]}}\ncluster: {brokers: 1}\nrun: 2s\n"
    workload = "workload: [{produce: t, rate: 5, from: 1s, client: {retriess: 0}}]\n"
    complaint = r"tried:4: workload\[0\]\.client\.retriess: no such client setting; did you mean"
    with pytest.raises(UserError, match=complaint):
        loads(text + workload, "tried")
