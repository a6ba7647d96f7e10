"""Each client of docs/do/clients.md, as its users start it: produces and consumes in a group while
the broker dies that leads the topic and coordinates the group."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.record_batch import records_of
from emulator.kafka.model.topic_names import GROUP_METADATA_TOPIC
from emulator.kafka.protocol.messages import FetchPartition, FetchRequest, FetchResponse
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.clients.blocking_client import send_request
from tests.live.processes.cluster import Brokers, three_brokers

pytestmark = [pytest.mark.live, pytest.mark.clients]

PROGRAMS = Path(__file__).parent / "programs"
CACHE = Path(__file__).parents[2] / ".venv" / "clients"
"""Downloads and builds are kept here."""
PAGE = Path(__file__).parents[2] / "docs" / "do" / "clients.md"
COUNT, BEFORE = 120, 40
"""Records, and how many of them are acknowledged before the producer gets others to send while the
leader dies. It gets the last one after that."""

Command = Callable[[], list[str]]

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>isr</groupId><artifactId>clients</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId>
    <version>{version}</version>
  </dependency></dependencies>
</project>
"""


def python(program: str) -> Command:
    return lambda: [sys.executable, str(PROGRAMS / program)]


def java(release: str) -> Command:
    """The client's jars by Maven; the program is compiled when it is started."""

    def command() -> list[str]:
        maven = shutil.which("mvn")
        assert maven is not None, "the Java client needs Maven (mvn)"
        jars = CACHE / f"java-{release}"
        if not (jars / "libs").exists():
            jars.mkdir(parents=True, exist_ok=True)
            (jars / "pom.xml").write_text(_POM.format(version=release))
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            fetch = [maven, "-q", "-B", *goal, f"-DoutputDirectory={jars / 'libs.part'}"]
            subprocess.run(fetch, cwd=jars, check=True, capture_output=True)
            (jars / "libs.part").rename(jars / "libs")
        return ["java", "-cp", f"{jars / 'libs'}/*", str(PROGRAMS / "Client.java")]

    return command


def franz() -> list[str]:
    """Built by Go, with the modules of go.sum."""
    go = shutil.which("go")
    assert go is not None, "franz-go needs Go (go)"
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / "franz"
    build = [go, "build", "-o", str(program), "."]
    subprocess.run(build, cwd=PROGRAMS / "franz", check=True, capture_output=True)
    return [str(program)]


CLIENTS: dict[str, Command] = {
    "kafka-python": python("python_kafka.py"),
    "confluent-kafka": python("librdkafka.py"),
    "aiokafka": python("asyncio_kafka.py"),
    "java-2.6.3": java("2.6.3"),
    "java-3.9.1": java("3.9.1"),
    "java-4.1.0": java("4.1.0"),
    "franz-go": franz,
}


class Program:
    """One client that runs; what it prints is read from a file, what a producer sends is given."""

    def __init__(self, command: list[str], output: Path) -> None:
        self._output = output
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with output.open("wb") as out, output.with_suffix(".err").open("wb") as err:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=err, env=environment
            )

    def give(self, numbers: Iterable[int]) -> None:
        """Without waiting until it has sent them."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(b"%d\n" % number for number in numbers))
        self._process.stdin.flush()

    @property
    def numbers(self) -> list[int]:
        text = self._output.read_text()
        return [int(line) for line in text[: text.rfind("\n") + 1].split()]

    def check(self) -> None:
        """It runs, or has ended well."""
        assert self._process.poll() in (None, 0), self._output.with_suffix(".err").read_text()

    def join(self) -> int:
        """Its exit code, when it has sent all that it was given."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(60)

    def kill(self) -> None:
        with self._process:  # closes its input, too
            self._process.kill()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    settings = (
        "zookeeper.session.timeout.ms=2000",
        "replica.lag.time.max.ms=2000",
        "auto.leader.rebalance.enable=false",
        "default.replication.factor=3",
        "offsets.topic.num.partitions=1",
        "group.initial.rebalance.delay.ms=100",
    )
    with three_brokers(tmp_path_factory.mktemp("brokers"), *settings) as running:
        running.create(GROUP_METADATA_TOPIC, (1, 2, 3))
        yield running


def metadata(brokers: Brokers, topic: str) -> PartitionState | None:
    """From any running broker."""
    running = next(n for n, broker in brokers.by_id.items() if broker.runs)
    return brokers.partition(running, topic)


def leader_of(brokers: Brokers, topic: str) -> int:
    """When all three replicas are in sync."""
    state = brokers.until(
        lambda: metadata(brokers, topic), lambda s: s is not None and len(s.isr) == 3
    )
    assert state is not None
    return state.leader


def stored(brokers: Brokers, topic: str) -> list[int]:
    """All that its leader's log has. Metadata may name one that is gone: asked again then."""
    found = brokers.until(lambda: log_of_leader(brokers, topic), lambda log: log is not None)
    assert found is not None
    return found


def log_of_leader(brokers: Brokers, topic: str) -> list[int] | None:
    """None: the broker that metadata names does not lead. Raises Unreachable."""
    partition, at, values = TopicPartition(topic, 0), 0, list[int]()
    state = metadata(brokers, topic)
    if state is None or state.leader < 0:
        return None
    server = ("127.0.0.1", brokers.ports[state.leader])
    while True:
        fetch = FetchPartition(partition, -1, at, 0, 1 << 20)
        response = send_request(server, FetchRequest(-1, 0, 0, 1 << 20, 0, -1, (fetch,)), 20)
        assert isinstance(response, FetchResponse)
        (fetched,) = response.partitions
        if fetched.error is Errors.NOT_LEADER_OR_FOLLOWER:
            return None
        assert fetched.error is Errors.NONE
        for batch in fetched.batches:
            at = batch.next_offset
            records = records_of(batch.data, batch.base_offset)
            values += [int(record.value or b"") for record in records]
        if not fetched.batches:
            return values


def start_again(brokers: Brokers, broker: int) -> None:
    """A process that was killed: not before its session has ended, or it cannot register."""
    brokers.by_id[broker].kill()
    other = next(n for n in brokers.by_id if n != broker)
    brokers.until(lambda: brokers.metadata(other), lambda m: len(m.brokers) == 2)
    brokers.by_id[broker].launch()
    brokers.until(lambda: brokers.metadata(broker), lambda m: len(m.brokers) == 3)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_leader_s_death_loses_and_repeats_nothing(
    brokers: Brokers, client: str, tmp_path: Path
) -> None:
    command, topic = CLIENTS[client](), f"through-{client}"
    dying = leader_of(brokers, GROUP_METADATA_TOPIC)
    brokers.create(topic, (dying, *(n for n in (1, 2, 3) if n != dying)))
    start = [brokers.bootstrap, topic]
    consumer = Program([*command, "consume", *start], tmp_path / "consumed")
    producer = Program([*command, "produce", *start], tmp_path / "produced")
    try:
        producer.give(range(BEFORE))
        brokers.until(
            lambda: (producer.check(), consumer.check(), producer.numbers, consumer.numbers),
            lambda seen: len(seen[2]) == BEFORE and bool(seen[3]),
        )
        producer.give(range(BEFORE, COUNT - 1))
        brokers.by_id[dying].kill()
        producer.give([COUNT - 1])
        assert producer.join() == 0
        producer.check()
        assert producer.numbers == list(range(COUNT))
        brokers.until(
            lambda: (consumer.check(), set(consumer.numbers)),
            lambda seen: seen[1] == set(range(COUNT)),
        )
        assert stored(brokers, topic) == list(range(COUNT))
    finally:
        producer.kill()
        consumer.kill()
        start_again(brokers, dying)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_is_created_when_a_producer_asks_for_it(
    brokers: Brokers, client: str, tmp_path: Path
) -> None:
    topic = f"created-{client}"
    start = [*CLIENTS[client](), "produce", brokers.bootstrap, topic]
    producer = Program(start, tmp_path / "produced")
    try:
        producer.give(range(3))
        assert producer.join() == 0, (tmp_path / "produced.err").read_text()
    finally:
        producer.kill()
    assert stored(brokers, topic) == [0, 1, 2]


@pytest.mark.parametrize("client", CLIENTS)
def test_deleted_records_are_not_consumed(brokers: Brokers, client: str, tmp_path: Path) -> None:
    """DeleteRecords through this client's administrator; its consumer begins where the log does."""
    command, topic = CLIENTS[client](), f"shorter-{client}"
    brokers.create(topic, (1, 2, 3))
    leader_of(brokers, topic)

    def run(records: int, mode: str, *offset: str) -> list[int]:
        program = Program([*command, mode, brokers.bootstrap, topic, *offset], tmp_path / mode)
        try:
            program.give(range(records))
            assert program.join() == 0, (tmp_path / mode).with_suffix(".err").read_text()
        finally:
            program.kill()
        return program.numbers

    run(6, "produce")
    assert run(0, "delete", "4") == [4]
    consumer = Program([*command, "consume", brokers.bootstrap, topic], tmp_path / "consumed")
    try:
        seen = brokers.until(
            lambda: (consumer.check(), consumer.numbers), lambda seen: 5 in seen[1]
        )
        assert seen[1] == [4, 5]
    finally:
        consumer.kill()


def test_the_page_s_table_names_these_clients() -> None:
    """Each of its rows is a client above, in the version that is tested."""
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.count("|") == 7]
    listed = {row[1].split(" (")[0].strip(): row[2].strip() for row in rows[2:]}
    java = {row[2].strip() for row in rows[2:] if "Java" in row[1]}
    assert java == {name.removeprefix("java-") for name in CLIENTS if name.startswith("java-")}
    for name in ("kafka-python", "confluent-kafka", "aiokafka"):
        assert version(name).startswith(listed[name] + "."), name
    modules = (PROGRAMS / "franz" / "go.mod").read_text()
    assert f"github.com/twmb/franz-go v{listed['franz-go']}." in modules
    assert len(rows) - 2 == len(CLIENTS)
