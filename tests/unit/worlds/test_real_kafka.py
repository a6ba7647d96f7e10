"""Recording real Kafka: what is refused before anything starts, and where Kafka comes from."""

from __future__ import annotations

import os
import queue
import signal
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from emulator.forensics.record import exits_of
from emulator.scenario import shipped
from emulator.scenario.actions.admin import DeleteTopic
from emulator.scenario.actions.clients import Send
from emulator.scenario.errors import UserError
from emulator.scenario.load import load, loads
from emulator.trace.values import Parameters
from emulator.worlds.real_kafka import clients
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.capabilities import check_supported
from emulator.worlds.real_kafka.client_side import RealClients
from emulator.worlds.real_kafka.clients import Administrator, client_settings
from emulator.worlds.real_kafka.host import RealHost
from emulator.worlds.real_kafka.notes import ActionRecord, RunNotes
from emulator.worlds.real_kafka.release import Release, check_version, find_release
from emulator.worlds.real_kafka.tools import Tools

SCENARIO = """\
topics:
  orders: {{partitions: [[1, 2, 3]]}}
workload: [{{produce: orders, rate: 5, acks: all, from: 1s}}]
faults:
  - {fault}
run: 13s
"""
POSSIBLE = [
    "{at: 2s, pause: {broker: 2}, for: 3s}",
    "{at: 2s, kill: {broker: 2}, for: 3s}",
    "{at: 2s, terminate: {broker: 2}, for: 3s}",
    "{at: 2s, crash: {broker: 2, lose: disk}, for: 3s}",
    "{at: 2s, cut_zookeeper_link: {broker: 2}, for: 3s}",
    "{at: 2s, cut_link: {broker: 2, peer: zookeeper}, for: 3s}",
    "{at: 2s, delay_link: {broker: 2, peer: zookeeper, delay_ms: 20}, for: 3s}",
    "{at: 2s, pause: {server: zookeeper}, for: 3s}",
    "{at: 2s, stop_zookeeper: {}, for: 3s}",
    "{at: 2s, reassign: {topic: orders, partition: 0, replicas: [2, 3]}}",
    "{at: 2s, preferred_election: {}}",
    "{at: 2s, topic_config: {topic: orders, config: {min.insync.replicas: 2}}}",
    "{at: 2s, cut_link: {broker: 2, peer: 1}, for: 3s}",
    "{at: 2s, cut_link: {broker: 2, peer: 1, ways: to_peer}, for: 3s}",
    "{at: 2s, delay_link: {broker: 2, peer: 1, delay_ms: 20}, for: 3s}",
    "{at: 2s, link_latency: {broker: 2, peer: 1, low_ms: 1, typical_ms: 9, high_ms: 90}}",
    "{at: 2s, link_latency: {broker: 2, peer: zookeeper, low_ms: 1, typical_ms: 9, high_ms: 90}}",
    "{at: 2s, delete_controller: {}}",
    "{at: 2s, preferred_election: {through: znode}}",
    "{at: 2s, reassign: {topic: orders, partition: 0, replicas: [2, 3], through: znode}}",
]
REFUSED = {
    "{at: 2s, cut_link: {broker: 2, peer: zookeeper, ways: to_peer}}": "ZooKeeper cuts both ways",
    "{at: 2s, crash: {broker: 2, lose: unflushed}}": "the operating system keeps unflushed records",
    "{at: 2s, slow_disk: {broker: 2, ms_per_append: 5}}": "slow disk is not supported for",
    "{at: 2s, slow_follower: {broker: 2, bytes_per_s: 5}}": "limit bandwidth is not supported for",
    "{at: 2s, expire_session: {broker: 2}}": "expire session is not supported for",
}


@pytest.mark.parametrize("fault", POSSIBLE)
def test_what_signals_proxies_and_clients_can_do_is_taken(fault: str) -> None:
    check_supported(loads(SCENARIO.format(fault=fault), "tried"), (2, 6, 3))


@pytest.mark.parametrize(("fault", "why"), REFUSED.items())
def test_what_a_real_cluster_cannot_be_given_is_refused_with_its_time(fault: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        check_supported(loads(SCENARIO.format(fault=fault), "tried"), (2, 6, 3))
    text = str(refused.value)
    assert why in text
    assert "at 2 s cannot be given to a real cluster" in text


def test_of_the_shipped_scenarios_most_can_be_recorded() -> None:
    def is_possible(path: Path) -> bool:
        try:
            check_supported(load(path), (2, 6, 3))
        except UserError:
            return False
        return True

    assert sum(map(is_possible, shipped.shipped().values())) >= 26


def test_one_version_and_one_set_of_settings_is_recorded() -> None:
    for cluster in ("broker_profile: {2: '2.4'}", "broker_config: {2: {num.io.threads: 2}}"):
        text = f"cluster:\n  {cluster}\n" + SCENARIO.format(fault="{at: 2s, kill: 2}")
        with pytest.raises(UserError, match=cluster.partition(":")[0]):
            check_supported(loads(text, "tried"), (2, 6, 3))


BY_VERSION = [
    ((0, 10, 1), "{at: 2s, cut_link: {broker: 2, peer: 1}}", "before 0.10.2 brokers have no"),
    ((3, 3, 2), "{at: 2s, preferred_election: {through: znode}}", "write no command znodes"),
    ((2, 1, 1), "{at: 2s, reassign: {topic: orders, partition: 0}}", "cannot be cancelled"),
    (
        (0, 8, 2, 2),
        "{at: 2s, add_partitions: {topic: orders, assignment: [[2, 1]]}}",
        "the tool chooses the replicas",
    ),
]


@pytest.mark.parametrize(("numbers", "fault", "why"), BY_VERSION)
def test_what_one_version_can_be_given_another_cannot(
    numbers: tuple[int, ...], fault: str, why: str
) -> None:
    scenario = loads(SCENARIO.format(fault=fault), "tried")
    check_supported(scenario, (2, 6, 3))
    with pytest.raises(UserError, match=why):
        check_supported(scenario, numbers)


@pytest.mark.parametrize("numbers", [(0, 8, 2, 2), (0, 10, 2, 2), (1, 1, 1), (2, 6, 3), (3, 9, 1)])
def test_a_crash_can_be_recorded_on_every_version(numbers: tuple[int, ...]) -> None:
    check_supported(load(shipped.find("leader-crash")), numbers)


def test_a_client_is_told_what_a_broker_before_0_10_knows() -> None:
    """Such a broker closes the connection of a client that asks it (KIP-35 is newer)."""
    reach = client_settings(["127.0.0.1:9092"], Release("0.9.0.1", Path()))
    assert reach["broker.version.fallback"] == "0.9.0.1" and not reach["api.version.request"]
    assert client_settings(["127.0.0.1:9092"], Release("0.10.2.2", Path())).keys() == {
        "bootstrap.servers"
    }


# -- where Kafka comes from ------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.8.2.2", "1.0.2", "2.6.3", "3.9.1"])
def test_versions_with_zookeeper_are_known(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize(
    ("version", "complaint"),
    [
        ("two", "expected a version such as 2.6.3"),
        ("2.6.x", "expected a version such as 2.6.3"),
        ("4.0.0", "4.0 has no ZooKeeper"),
        ("0.8.1", "0.8.2 to 3.9 can be run"),
    ],
)
def test_others_are_refused(version: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        check_version(version)


def test_without_maven_a_release_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"no Maven \(mvn\) .* --kafka-home DIR"):
        find_release("2.6.3", None, tmp_path)
    assert list(tmp_path.iterdir()) == []


def maven_that_says(folder: Path, script: str) -> None:
    mvn = folder / "mvn"
    mvn.write_text(f"#!/bin/sh\n{script}\n")
    mvn.chmod(0o755)


NOT_THERE = [
    "[ERROR] Could not find artifact org.apache.kafka:kafka_2.13:jar:2.6.77 in central",
    (
        "\\033[0m[ERROR] Could not resolve: org.apache.kafka:kafka_2.13:jar:2.6.77 was not found in"
        " central during a previous attempt"
    ),
]


@pytest.mark.parametrize("said", NOT_THERE, ids=["asked", "remembered"])
def test_a_version_that_does_not_exist_is_one_line(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven_that_says(tmp_path, f"printf '{said}'; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError, match=r"--kafka 2\.6\.77: there is no such version of Kafka"):
        find_release("2.6.77", None, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_another_mishap_of_mavens_is_told_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven_that_says(tmp_path, "printf '\\033[0m[ERROR] No space left\\n[ERROR]\\n'; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError, match=r"Maven cannot fetch Kafka 2\.6\.3: No space left$"):
        find_release("2.6.3", None, tmp_path / "cache")


def test_what_maven_brought_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven_that_says(tmp_path, "mkdir libs && touch libs/kafka_2.13-2.6.3.jar && echo x >> ../../n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for _ in range(2):
        release = find_release("2.6.3", None, tmp_path / "cache")
        assert release == Release("2.6.3", tmp_path / "cache" / "kafka-2.6.3" / "libs")
        assert (release.libs / "kafka_2.13-2.6.3.jar").exists()
    assert (tmp_path / "cache" / "n").read_text() == "x\n"


def test_an_unpacked_release_says_its_version(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.12-2.7.2.jar").touch()
    (tmp_path / "libs" / "kafka_2.12-2.7.2-sources.jar").touch()
    release = find_release(None, tmp_path)
    assert (release.version, release.line, release.numbers) == ("2.7.2", "2.7", (2, 7, 2))
    with pytest.raises(UserError, match=r"it is Kafka 2\.7\.2, not 2\.6\.3"):
        find_release("2.6.3", tmp_path)
    with pytest.raises(UserError, match="no unpacked release"):
        find_release(None, tmp_path / "libs")
    with pytest.raises(UserError, match="--kafka VERSION or --kafka-home DIR"):
        find_release(None, None)


def test_lines_of_versions_are_named_as_profiles_are() -> None:
    assert Release("0.8.2.2", Path()).line == "0.8.2"
    assert Release("3.3.2", Path()).line == "3.3"


def test_no_question_of_a_client_creates_a_topic_unless_the_scenario_wants_it(
    tmp_path: Path,
) -> None:
    """Neither one about a topic nor a consumer's about its coordinator."""

    def properties(name: str, **settings: str) -> list[str]:
        settings = {key.replace("_", "."): value for key, value in settings.items()}
        broker = RealBroker(1, tmp_path / name, Release("2.6.3", tmp_path))
        broker.configure(settings)
        broker.close()
        return (tmp_path / name / "server.properties").read_text().splitlines()

    ours = {"auto.create.topics.enable=false", "offsets.topic.replication.factor=1000"}
    assert ours <= set(properties("a"))
    wanted = properties("b", offsets_topic_replication_factor="3")
    assert "offsets.topic.replication.factor=3" in wanted
    assert not ours <= set(wanted)


def test_a_process_that_ends_by_itself_is_recorded_as_exited_and_a_killed_one_is_not() -> None:
    """A start fails while the registration of the killed process still exists: the play needs to
    know that there was one."""

    class Process:
        """A JVM that ends when it is told to, or by itself."""

        id, runs = 1, False

        def start(self) -> None:
            self.runs = True

        def kill(self) -> None:
            self.runs = False

    process = Process()
    notes = RunNotes(began_us=0, up_us=1)
    host = RealHost(process, notes)  # type: ignore[arg-type]
    host.boot()
    notes.actions.append(ActionRecord(notes.processes[-1].at_us, "kill", 1, Parameters()))
    host.kill()
    host.look()
    host.boot()
    process.runs = False
    host.look()
    host.look()
    exited = notes.processes[-1]
    notes.ended_us = exited.at_us
    assert [one.state for one in notes.processes] == ["starting", "dead"] * 2
    at_ms = (exited.at_us - 1) // 1000
    assert exits_of(notes) == [{"t": at_ms, "kind": "stimulus", "do": "exited", "broker": 1}]


def test_a_driver_whose_topic_was_deleted_hands_over_no_more_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka takes no records of such a topic. What it took before still gets its result."""

    class Client:
        def __init__(self, _: object) -> None:
            self.callbacks: list[Callable[..., None]] = []

        def produce(self, *_: object, callback: Callable[..., None], **__: object) -> None:
            if self.callbacks:
                raise KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC))
            self.callbacks.append(callback)

        def __len__(self) -> int:
            return len(self.callbacks)

        def poll(self, _: float) -> None:
            if self.callbacks:
                self.callbacks.pop()(None, Record())

        def purge(self) -> None: ...

    class Record:
        def topic(self) -> str:
            return "t"

        def partition(self) -> int:
            return 0

        def offset(self) -> int:
            return 7

    monkeypatch.setattr(clients, "Producer", Client)
    request = Send("t", partitions=(0,), records=3, acks="all")
    results: list[clients.Produced] = []
    driver = clients.Driver("producer-1", request, {}, results.append)
    driver.close(10)
    assert (driver.sent, [one.offset for one in results]) == (1, [7])


def test_a_command_that_a_former_controller_refuses_is_repeated_with_new_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka's AdminClient would not (random script 135)."""
    seen: list[str] = []
    results = deque(["NOT_CONTROLLER", "NOT_CONTROLLER", "NONE"])
    monkeypatch.setattr(Administrator, "live", lambda self: seen.append("metadata"))

    def send(_administrator: Administrator, _request: DeleteTopic) -> str:
        seen.append("sent")
        return results.popleft()

    monkeypatch.setattr(Administrator, "_send", send)
    assert Administrator({"bootstrap.servers": "127.0.0.1:1"}).do(DeleteTopic("orders")) == "NONE"
    assert seen == ["metadata", "sent"] * 3


def test_at_the_end_of_a_run_the_tool_that_runs_is_killed_and_no_other_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "started")
    java = tmp_path / "java"
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 && exit\n'
        f"echo > {tmp_path}/started\nexec sleep 60\n"
    )
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tools = Tools(Release("2.6.3", tmp_path), "127.0.0.1:1", tmp_path, lambda topic: [])
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(tools.do, DeleteTopic("orders"))
        (tmp_path / "started").read_text()
        tools.close()
        assert result.result(timeout=30) == f"exit code {-signal.SIGKILL}"
    assert tools.do(DeleteTopic("orders")) == "CLOSED"


def test_a_request_that_fails_has_no_result_and_those_after_it_are_sent(tmp_path: Path) -> None:
    sent: queue.SimpleQueue[DeleteTopic] = queue.SimpleQueue()

    class Failing:
        def do(self, request: DeleteTopic) -> str:
            sent.put(request)
            raise KeyError(-1)  # no controller in the metadata

    notes = RunNotes(began_us=0)
    clients_ = RealClients((2, 6, 3), dict, notes)
    clients_.administrator = Failing()  # type: ignore[assignment]
    clients_.tools = Tools(Release("2.6.3", tmp_path), "127.0.0.1:1", tmp_path, lambda topic: [])
    for topic in ("orders", "bills"):
        notes.record(DeleteTopic(topic))
        clients_.admin(DeleteTopic(topic))
    assert [sent.get(timeout=30).topic for _ in range(2)] == ["orders", "bills"]
    clients_.close()
    assert [(one.result, one.returned_us) for one in notes.actions] == [("", 0), ("", 0)]
