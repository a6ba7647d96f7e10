"""Brokers as processes live and die: SIGTERM, SIGKILL, SIGSTOP, and what others learn of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.kafka.protocol.messages import (
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from emulator.trace import events
from emulator.trace.reader import read_events
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.blocking_client import send_request
from emulator.worlds.processes.local_brokers import LocalBroker
from emulator.worlds.wire.records import filled
from tests.live.processes.cluster import Brokers, three_brokers
from tests.live.zk.unresponsive_server import UnresponsiveServer
from zk.real.server import reserve, wait_until_ready

pytestmark = [pytest.mark.live, pytest.mark.slow]
SHORT_SESSION = "zookeeper.session.timeout.ms=2000"
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    folder = tmp_path_factory.mktemp("brokers")
    with three_brokers(folder, SHORT_SESSION, "replica.lag.time.max.ms=2000") as running:
        running.create("orders", (1, 2, 3))
        yield running


def send(brokers: Brokers, to: int, records: int) -> ProducedPartition:
    """Records to orders-0 at a broker that is thought to lead it, with acks=all."""
    data = filled(records, 100 * records, 0)
    wanted = ProducePartition(ORDERS, records, len(data), data)
    server = ("127.0.0.1", brokers.ports[to])
    answer = send_request(server, ProduceRequest(-1, 10_000, (wanted,)), 20)
    assert isinstance(answer, ProduceResponse)
    return answer.partitions[0]


def trace(folder: Path, broker: int) -> list[events.AnyEvent]:
    return list(read_events(folder / f"broker-{broker}.ndjson"))


def in_full_isr(brokers: Brokers, asked: int, leader: int) -> None:
    brokers.until(
        lambda: brokers.partition(asked, "orders"),
        lambda s: s is not None and s.leader == leader and sorted(s.isr) == [1, 2, 3],
    )


def test_a_killed_leader_is_followed_and_finds_its_log_again(brokers: Brokers) -> None:
    """SIGKILL: its session runs out, another one leads; started again, it has its records, and what
    the others got meanwhile."""
    # The leader itself is to be heard: a controller has a connection and a thread per broker, and
    # the others may have this topic's metadata before the leader has its LeaderAndIsr.
    in_full_isr(brokers, 1, 1)
    assert send(brokers, 1, 5).base_offset == 0
    brokers.by_id[1].kill()
    assert brokers.by_id[1].exit_code(10) == -9
    brokers.until(lambda: brokers.partition(2, "orders"), lambda s: s is not None and s.leader == 2)
    assert send(brokers, 2, 1).base_offset == 5
    brokers.by_id[1].launch()
    in_full_isr(brokers, 2, 2)
    appended = [e for e in trace(brokers.folder, 1) if isinstance(e, events.RecordsAppended)]
    assert [(e.role, e.base_offset, e.leo) for e in appended] == [
        ("leader", 0, 5),
        ("follower", 5, 6),
    ]
    checkpoint = brokers.folder / "data-1" / "orders-0" / "leader-epoch-checkpoint"
    assert checkpoint.read_text().splitlines()[:1] == ["0"]


def test_a_start_traces_what_the_files_have(brokers: Brokers) -> None:
    brokers.restart(1)
    story = trace(brokers.folder, 1)
    loaded = [e for e in story if isinstance(e, events.LogLoaded) and e.partition == ORDERS][-1]
    assert loaded.log_start_offset == 0
    assert loaded.leo == max(e.leo for e in story if isinstance(e, events.RecordsAppended))
    in_full_isr(brokers, 2, 2)


def test_sigterm_moves_leaderships_away_first(brokers: Brokers) -> None:
    """Controlled shutdown: exit code 0, and no partition was without a leader."""
    state = brokers.partition(3, "orders")
    assert state is not None
    leader = state.leader
    other = next(n for n in (1, 2, 3) if n not in (leader, brokers.controller(leader)))
    brokers.by_id[leader].terminate()
    assert brokers.by_id[leader].exit_code(30) == 0
    moved = brokers.until(
        lambda: brokers.partition(other, "orders"), lambda s: s is not None and s.leader != leader
    )
    assert moved is not None
    assert moved.leader > 0
    assert moved.leader_epoch == state.leader_epoch + 1
    brokers.by_id[leader].launch()
    brokers.until(
        lambda: brokers.partition(other, "orders"), lambda s: s is not None and len(s.isr) == 3
    )


def test_a_controller_that_stood_still_is_fenced_when_it_wakes(brokers: Brokers) -> None:
    """SIGSTOP beyond its session: the others elect another; woken, it resigns."""
    old = brokers.controller()
    other = next(n for n in (1, 2, 3) if n != old)
    brokers.by_id[old].pause()
    new = brokers.until(lambda: brokers.controller(other), lambda c: c not in (old, -1))
    brokers.by_id[old].resume()
    brokers.until(lambda: brokers.controller(old), lambda c: c == new)
    resigned = [e for e in trace(brokers.folder, old) if isinstance(e, events.ControllerResigned)]
    elected = [e for e in trace(brokers.folder, new) if isinstance(e, events.ControllerElected)]
    assert resigned[-1].controller_epoch < elected[-1].controller_epoch


def test_a_stop_while_zookeeper_is_gone_waits_for_it(brokers: Brokers) -> None:
    """Controlled shutdown asks ZooKeeper who the controller is, for as long as it takes."""
    stopping = next(n for n in (1, 2, 3) if n != brokers.controller())
    brokers.server.stop()
    brokers.by_id[stopping].terminate()
    brokers.until(
        brokers.by_id[stopping].current_log_text, lambda text: "waits for ZooKeeper at" in text
    )
    assert brokers.by_id[stopping].exit_code(1) is None
    brokers.server.launch()
    wait_until_ready(brokers.server.address)
    assert brokers.by_id[stopping].exit_code(60) == 0
    brokers.by_id[stopping].launch()
    brokers.until(lambda: brokers.metadata(stopping), lambda m: len(m.brokers) == 3)


def test_a_second_signal_ends_a_broker_that_waits_for_zookeeper(brokers: Brokers) -> None:
    """At once, although its connection attempt would hang for a while."""
    stopping = next(n for n in (1, 2, 3) if n != brokers.controller())
    broker = brokers.by_id[stopping]
    brokers.server.stop()
    with UnresponsiveServer(*brokers.server.address.servers[0]) as zookeeper:
        broker.terminate()
        # Two signals at the same time are one: the process must have seen the first.
        brokers.until(
            broker.current_log_text, lambda text: "a second signal ends the broker" in text
        )
        brokers.until(lambda: zookeeper.has_connecting(broker.pid), bool)
        broker.terminate()
        assert broker.exit_code(10) == 1
    brokers.server.launch()
    wait_until_ready(brokers.server.address)
    others = next(n for n in (1, 2, 3) if n != stopping)
    brokers.until(lambda: brokers.metadata(others), lambda m: len(m.brokers) == 2)
    brokers.by_id[stopping].launch()
    brokers.until(lambda: brokers.metadata(stopping), lambda m: len(m.brokers) == 3)


def test_a_kill_while_zookeeper_is_gone_is_a_kill(brokers: Brokers) -> None:
    """Its session ends when the server that came back has waited for it; before, it could not be
    registered anew."""
    brokers.server.stop()
    brokers.by_id[1].kill()
    assert brokers.by_id[1].exit_code(10) == -9
    brokers.server.launch()
    wait_until_ready(brokers.server.address)
    brokers.until(lambda: brokers.metadata(2), lambda m: len(m.brokers) == 2)
    brokers.by_id[1].launch()
    brokers.until(lambda: brokers.metadata(1), lambda m: len(m.brokers) == 3)


def test_a_registration_that_is_there_keeps_another_from_starting(
    brokers: Brokers, tmp_path: Path
) -> None:
    """As in Kafka, this includes its own next process, until the old session has ended."""
    with reserve(0) as reservation:
        words = ["--id", "1", "--zookeeper", str(brokers.server.address)]
        words += ["--listen", f"127.0.0.1:{reservation.getsockname()[1]}"]
        second = LocalBroker(1, words, tmp_path / "second.log")
        second.launch()
        assert second.exit_code(60) == 64
    assert "NODE_EXISTS for /brokers/ids/1: another broker has this id, or" in second.log_text()
    assert len(brokers.metadata(2).brokers) == 3


def test_nobody_died_of_it(brokers: Brokers) -> None:
    for broker in brokers.by_id.values():
        assert broker.runs
        assert Path(f"/proc/{broker.pid}").exists()
        assert os.getpid() != broker.pid
        assert "internal error" not in broker.log_text()
