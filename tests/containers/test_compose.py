"""docker-compose.yml from nothing: a cluster of containers, its pages, faults, and what is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.view.live.zookeeper_view import SeenState
from emulator.worlds.processes.container_site import RUN_LABEL
from tests.command import Isr
from tests.containers.conftest import (
    AT_ZOOKEEPER,
    OF_PROJECT,
    PATIENCE_S,
    PROJECT,
    Compose,
    eventually,
    left_by,
)
from tests.containers.playing import PLAYS, agree_literally, not_held, say_lost
from tests.live.agreeing import longer
from tests.sim.shipped_runs import RACE_FREE
from zk.real.server import parse_address, wait_until_ready
from zk.real.server_container import freeze

pytestmark = pytest.mark.containers

STRUCK = "leader-crash"
TOPIC = ("topics", "create", "orders", "--bootstrap", "broker-1:9092")


@pytest.fixture(scope="module", autouse=True)
def orders(compose: Compose) -> None:
    """A topic whose three replicas are in sync."""
    words = (*TOPIC, "--partitions", "3", "--replication-factor", "3")

    def created() -> bool:
        """Brokers of a busy machine may not answer in time; it may be there all the same."""
        done = compose.tried("run", "--rm", "-T", "lab", *words)
        return done.returncode == 0 or "TOPIC_ALREADY_EXISTS" in done.stdout + done.stderr

    eventually(created)
    eventually(lambda: sorted(_isr(compose, "orders-0")) == [1, 2, 3])


def _state(compose: Compose, partition: str) -> SeenState:
    """The state in ZooKeeper."""
    state = compose.observer.look().seen.partitions[partition].state
    assert state is not None
    return state


def _isr(compose: Compose, partition: str) -> list[int]:
    return list(_state(compose, partition).isr)


def test_every_view_of_every_partition_is_known_and_the_same(compose: Compose) -> None:
    def agree() -> bool:
        look = json.loads(compose.lab("top", "--zookeeper", "zookeeper:2181", "--json"))
        told = [view for views in look["views"].values() for view in views]
        assert len(told) == 3 * (2 + 3)
        return all(view["known"] and not view["differs"] for view in told)

    eventually(agree)


def test_metrics_have_kafkas_names_and_add_up(compose: Compose) -> None:
    def add_up() -> bool:
        pages = [compose.metrics(broker) for broker in (1, 2, 3)]
        led = [page["kafka_server_replicamanager_leadercount"] for page in pages]
        hosted = [page["kafka_server_replicamanager_partitioncount"] for page in pages]
        active = [page["kafka_controller_kafkacontroller_activecontrollercount"] for page in pages]
        return (sum(led), hosted, sum(active)) == (3, [3, 3, 3], 1)

    eventually(add_up)


def test_a_controller_that_stands_still_is_replaced_and_resigns_when_it_wakes(
    compose: Compose,
) -> None:
    (before,) = eventually(compose.controllers)
    paused = compose.container(f"broker-{before}")
    freeze(paused)
    try:
        (after,) = eventually(lambda: [one for one in compose.controllers() if one != before])
        epoch = compose.status(after)["controller_epoch"]
        eventually(lambda: before not in _isr(compose, "orders-0"))
    finally:
        paused.unpause()
    eventually(lambda: compose.controllers() == [after])
    assert compose.status(after)["controller_epoch"] == epoch
    eventually(lambda: sorted(_isr(compose, "orders-0")) == [1, 2, 3])


def test_a_broker_that_is_killed_and_started_finds_its_files_again(compose: Compose) -> None:
    broker = compose.container("broker-2")
    broker.kill()
    broker.wait()
    eventually(lambda: 2 not in _isr(compose, "orders-0"))
    broker.start()
    eventually(lambda: sorted(_isr(compose, "orders-0")) == [1, 2, 3])
    assert "meta.properties" in broker.exec_run("find /data").output.decode()


def test_a_broker_without_a_network_leaves_every_isr_and_comes_back(compose: Compose) -> None:
    broker = compose.container("broker-3")
    (name,) = broker.attrs["NetworkSettings"]["Networks"]
    aliases = broker.attrs["NetworkSettings"]["Networks"][name]["Aliases"]
    network = compose.engine.networks.get(name)
    network.disconnect(broker)
    eventually(lambda: 3 not in _isr(compose, "orders-0"))
    network.connect(broker, aliases=aliases)
    eventually(lambda: sorted(_isr(compose, "orders-0")) == [1, 2, 3])


def test_zookeeper_killed_and_started_again_keeps_every_state(compose: Compose) -> None:
    before = _state(compose, "orders-1")
    server = compose.container("zookeeper")
    server.kill()
    server.wait()
    server.start()
    wait_until_ready(parse_address(AT_ZOOKEEPER), PATIENCE_S * 1000)
    eventually(lambda: len(compose.controllers()) == 1)
    after = _state(compose, "orders-1")
    assert after.leader_epoch >= before.leader_epoch
    eventually(lambda: sorted(_isr(compose, "orders-1")) == [1, 2, 3])


def test_asked_to_stop_a_broker_hands_its_leaderships_over(compose: Compose) -> None:
    broker = compose.container("broker-1")
    broker.stop(timeout=PATIENCE_S)
    broker.reload()
    assert broker.attrs["State"]["ExitCode"] == 0, broker.logs(tail=20).decode()
    eventually(lambda: all(_state(compose, f"orders-{n}").leader != 1 for n in range(3)))
    broker.start()
    eventually(lambda: sorted(_isr(compose, "orders-0")) == [1, 2, 3])


def test_from_inside_the_environment_its_own_brokers_stand_by(compose: Compose) -> None:
    """`docker compose run lab isr run --target compose`: the network and ZooKeeper of the
    environment; its brokers run again afterwards, and nothing of the run is left at ZooKeeper."""
    for _ in range(PLAYS):
        summary = compose.scenario(STRUCK)
        if summary["verdict"] == "held":
            break
        say_lost(STRUCK, not_held(summary))
    assert summary["verdict"] == "held", summary
    _as_it_was(compose)


@pytest.mark.soak
@pytest.mark.parametrize("name", RACE_FREE)
def test_a_race_free_one_is_in_the_environment_what_it_is_in_virtual_time(
    isr: Isr, compose: Compose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """From the host, literally."""
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
    agree_literally(isr, longer(name, tmp_path / name), "compose", tmp_path)
    _as_it_was(compose)


def test_where_no_environment_runs_it_is_one_line(
    isr: Isr, compose: Compose, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", f"no-{PROJECT}")
    code, told = isr.fails("run", "min-isr", "--target", "compose", "--out", tmp_path)
    assert code == 64
    assert told.startswith("isr: --target compose: no environment runs; docker compose up -d")


def _as_it_was(compose: Compose) -> None:
    """Its brokers run, with their topic; nothing of a run is left."""
    assert left_by(RUN_LABEL, OF_PROJECT) == []
    eventually(lambda: len(compose.controllers()) == 1)
    names = compose.lab("isr", "topics", "list", "--bootstrap", "broker-1:9092")
    assert "orders-0" in names
    assert [name for name in compose.at_root() if name.startswith("isr-run")] == []
