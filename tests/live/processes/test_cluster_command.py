"""`isr cluster`: a cluster that stays up, driven by commands, on a real ZooKeeper."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from emulator.runs.control import SOCKET, Apply, ClusterStatus, Status, request_of
from emulator.runs.run_directory import find_run
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from emulator.trace import events
from emulator.trace.reader import read_events
from emulator.worlds.clients.blocking_client import metadata
from tests.live.agreeing import ISR
from tests.live.leftovers import alive, children, gone
from tests.live.processes.cluster import _moment

pytestmark = [pytest.mark.live, pytest.mark.slow]

UP = ("cluster", "up", "--set", "zookeeper.session.timeout.ms=6000")
UP_WITHIN_S, CHANGES_WITHIN_S = 120, 60


class Cluster:
    """Commands as a user types them, in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def isr(self, *words: str, code: int = 0) -> str:
        """The output of a command; on standard error if it fails."""
        done = subprocess.run(
            [*ISR, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=UP_WITHIN_S,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    def __call__(self, *words: str, code: int = 0) -> str:
        return self.isr("cluster", *words, code=code)

    @property
    def status(self) -> ClusterStatus:
        """Like `isr cluster status`."""
        status = request_of(self.run, Status()).status
        assert status is not None
        return status

    def states(self) -> dict[int, str]:
        return {one.broker: one.state for one in self.status.brokers}

    def becomes(self, broker: int, state: str) -> None:
        end_s = time.monotonic() + CHANGES_WITHIN_S
        while self.states()[broker] != state:
            assert time.monotonic() < end_s, f"broker {broker} did not become {state}"
            _moment()

    @property
    def run(self) -> Path:
        return next((self.folder / "runs" / "cluster").iterdir())

    @property
    def trace(self) -> list[events.AnyEvent]:
        return list(read_events(find_run(str(self.run)) / "trace.ndjson"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.isr(*UP, "-d")
        yield made
    finally:
        if list(made.folder.rglob(SOCKET)):
            made("down")


def test_it_is_ready_when_every_broker_knows_all_and_a_controller(cluster: Cluster) -> None:
    status = msgspec.json.decode(cluster("status", "--json"), type=ClusterStatus)
    assert [one.state for one in status.brokers] == ["up"] * 3
    assert [one.host for one in status.brokers] == ["process"] * 3
    assert status.controller in (1, 2, 3)
    assert status.faults == []
    assert f"broker {status.controller}  up  process" in cluster("status")
    for address in status.bootstrap.split(","):
        host, _, port = address.rpartition(":")
        assert len(metadata([(host, int(port))], 10).brokers) == 3


def test_topics_and_records_are_actions_too(cluster: Cluster) -> None:
    assert cluster("create_topic", "orders", "1,2,3") == "create_topic orders [[1,2,3]]\n"
    assert "TOPIC_ALREADY_EXISTS" in cluster("create_topic", "orders", "1,2,3", code=64)
    assert cluster("produce", "orders-0", "5") == "send orders [0] 5\n"


def test_a_fault_ends_with_its_time(cluster: Cluster) -> None:
    assert cluster("pause", "2", "--for", "1s") == "pause 2 for 1 s\n"
    cluster.becomes(2, "up")
    assert cluster.status.faults == []


def test_faults_stand_until_they_are_healed(cluster: Cluster) -> None:
    cluster("pause", "2")
    cluster("cut", "1", "2")
    cluster("cut", "1", "zookeeper")
    cluster("delay", "1", "3", "50ms")
    standing = ["pause 2", "cut_link 1 2", "cut_link 1 zookeeper", "delay_link 1 3 50"]
    assert cluster.status.faults == standing
    assert cluster.states()[2] == "paused"
    cluster("resume", "2")
    assert cluster("heal", "zookeeper") == "healed: cut_link 1 zookeeper\n"
    cluster("heal")
    assert cluster.status.faults == []
    assert cluster("heal", code=64) == "isr: heal: no such fault; current faults: none\n"


def test_a_broker_is_killed_and_stopped_and_starts_again(cluster: Cluster) -> None:
    cluster("kill", "3", "--for", "8s")  # its session has ended by then
    cluster.becomes(3, "dead")
    cluster.becomes(3, "up")
    cluster("stop", "2")
    cluster.becomes(2, "dead")
    assert cluster("stop", "2", code=64) == "isr: terminate: broker 2 does not run\n"
    cluster("start", "2")
    cluster.becomes(2, "up")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pause", "9"), "broker: there is no broker 9; the cluster has 1, 2, 3"),
        (("cut", "1"), "cut_link needs peer"),
        (("start", "1"), "start: broker 1 runs already"),
        (("hold", "1", "zookeeper"), "hold: hold is not supported for processes"),
        (("expire_session", "1", "--for"), "expire_session: nothing undoes it; leave out"),
        (("delay", "1", "2", "50us"), "delay_ms: '50us' is finer than a millisecond"),
        (("delay", "1", "2", "fifty"), "delay_ms: expected milliseconds or a time such as 50ms"),
    ],
)
def test_what_cannot_be_done_is_refused(
    cluster: Cluster, words: tuple[str, ...], message: str
) -> None:
    for_us = 3_000_000 if "--for" in words else 0
    with pytest.raises(UserError, match=re.escape(message)):
        request_of(cluster.run, Apply([word for word in words if word != "--for"], for_us))


def test_a_refusal_is_one_line(cluster: Cluster) -> None:
    text = cluster("pause", "9", code=64)
    assert text == "isr: broker: there is no broker 9; the cluster has 1, 2, 3\n"
    assert cluster("expire_session", "1", "--for", "3s", code=64).startswith("isr: expire_session")


def test_other_commands_attach_by_the_run(cluster: Cluster) -> None:
    watched = cluster.isr("watch", "--zookeeper", "cluster", "--for", "2s")
    assert "orders-0" in watched
    seen = json.loads(cluster.isr("top", "--zookeeper", str(cluster.run), "--json"))
    assert "orders-0" in seen["views"]
    tapped = cluster.isr("tap", "--zookeeper", "cluster", "--listen", ":0", "--for", "1s")
    assert "0 requests of 0 connections" in tapped
    assert "broker 3: started at" in cluster("logs", "3")
    assert "zookeeper" in cluster("logs", "zookeeper").lower()
    assert "==> broker 1 <==" in cluster("logs")


def test_when_it_is_down_it_is_a_run_like_any_other(cluster: Cluster) -> None:
    run = cluster.run
    assert cluster("down") == f"run directory  {run.relative_to(cluster.folder)}\n"
    assert "is not up" in cluster("status", code=64)
    assert not (run / SOCKET).exists()
    actions = [e.do for e in cluster.trace if isinstance(e, events.ActionApplied)]
    assert actions[0] == "up"
    done = {"create_topic", "send", "pause", "resume", "cut_link", "heal_link", "delay_link"}
    assert {*done, "kill", "terminate", "start"} <= set(actions)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["scenario"] == "cluster"
    for command in ("show", "report", "describe", "check"):
        assert cluster.isr(command, "cluster")
    # What was done by hand is a scenario now, without the start that was refused at the end.
    again = load(run / "scenario.yaml")
    assert actions[-1] == "start"
    assert [step.action.name for step in again.steps] == actions[1:-1]


@contextmanager
def in_foreground(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], set[int]]]:
    """A cluster that is ready, and the processes that it has started."""
    (folder / "tmp").mkdir()
    own = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(
        [*ISR, *UP, *words], cwd=folder, env=own, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert any(line.startswith("ready") for line in process.stdout)
            yield process, children(process.pid)
        finally:
            process.kill()
    assert list((folder / "tmp").iterdir()) == []


def test_however_it_ends_nothing_of_it_runs(tmp_path: Path) -> None:
    """Killed: its brokers, its server and their watchdogs are gone, no file is outside of the run
    directory, and that can be read."""
    with in_foreground(tmp_path) as (process, started):
        assert len(started) >= 4, "three brokers and a server"
        process.kill()
    assert all(gone(pid) for pid in started)
    cluster = Cluster(tmp_path)
    assert "is not up" in cluster("status", code=64)
    kinds = {type(event) for event in cluster.trace}
    assert {events.BrokerStarted, events.ZkTransaction, events.ControllerElected} <= kinds
    assert cluster.isr("show", "cluster")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_an_orderly_way(tmp_path: Path, how: signal.Signals) -> None:
    with in_foreground(tmp_path, "--brokers", "2") as (process, started):
        process.send_signal(how)
        assert process.stdout is not None
        rest = process.stdout.read()
        assert process.wait(UP_WITHIN_S) == 0, rest
    assert "run directory" in rest
    assert not any(alive(pid) for pid in started)
    assert (Cluster(tmp_path).run / "summary.json").exists()
