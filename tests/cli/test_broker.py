"""`isr broker`, `isr topics` and `isr run --processes`: what is refused, before anything starts.

What they do is in tests/live/processes.
"""

from __future__ import annotations

import gc
import json
import socket
import warnings
from pathlib import Path

import pytest

from tests.command import Isr

AT = ("broker", "--id", "1", "--zookeeper", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--profile", "0.10.2"), "--profile 0.10.2: brokers as processes speak the protocol of"),
        (("--profile", "7"), "--profile 7: there is no profile 7"),
        (("--listen", "9092"), "--listen 9092: not of the form HOST:PORT"),
        (("--listen", "h:70000"), "--listen h:70000: not of the form HOST:PORT"),
        (("--through", "h:1"), "--through h:1: not of the form HOST:PORT=HOST:PORT"),
        (("--listen", "0.0.0.0:9092"), "--listen 0.0.0.0:9092: clients cannot connect"),
        (("--set", "num.io.threads=0"), "--set: num.io.threads must be at least 1"),
        (("--set", "no.such=1"), "--set no.such=1: there is no setting no.such"),
    ],
)
def test_a_mistake_is_one_line(isr: Isr, words: tuple[str, ...], line: str) -> None:
    code, told = isr.fails(*AT, *words)
    assert code == 64
    assert line in told


def test_a_folder_of_another_broker_is_refused(isr: Isr, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=7\n")
    code, told = isr.fails(*AT, "--data", tmp_path)
    assert (code, told) == (
        64,
        f"isr: --data {tmp_path}: belongs to another broker (meta.properties: 7)",
    )


@pytest.mark.parametrize(
    ("host", "is_warned"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)]
)
def test_an_address_that_others_reach_is_warned_of(isr: Isr, host: str, is_warned: bool) -> None:
    """Before anything listens: here the port is taken."""
    with socket.create_server((host, 0)) as taken:
        port = taken.getsockname()[1]
        where = ("--listen", f"{host}:{port}", "--advertise", f"127.0.0.1:{port}")
        code, _, told = isr(*AT, *where)
    assert code == 64
    assert ("no authentication: everybody who reaches this address" in told) == is_warned


def test_a_port_that_is_taken_is_said(isr: Isr) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        code, told = isr.fails(*AT, "--listen", where)
    assert code == 64
    assert told.startswith(f"isr: --listen {where}: Address already in use")


def test_topics_of_nobody(isr: Isr) -> None:
    code, told = isr.fails("topics", "list", "--bootstrap", "127.0.0.1:1")
    assert code == 64
    assert "no broker responded: 127.0.0.1:1" in told
    assert isr.fails("topics", "create", "t", "--assignment", "a:b")[0] == 64


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--target", "moon"), "--target moon: simulated, live, processes, containers"),
        (("--processes", "--target", "live"), "--processes: not with --target live"),
        (("--processes", "--zookeeper", "simulated"), "--target processes: not with --zookeeper"),
        (("--target", "live", "--zookeeper", "simulated"), "--target live: not with --zookeeper"),
        (
            ("--processes", "--zookeeper", "a:1"),
            "--target processes starts its own ZooKeeper",
        ),
        (("--processes", "--time-scale", "2"), "--target processes runs in real time"),
        (("--processes", "--profile", "0.9.0"), "--profile 0.9.0: brokers as processes"),
    ],
)
def test_what_a_target_does_not_go_with_is_said_before_anything_starts(
    isr: Isr, words: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    code, told = isr.fails("run", "gc-pause", *words, "--out", tmp_path / "runs")
    assert code == 64
    assert line in told
    assert not (tmp_path / "runs").exists()


def test_one_of_several_zookeeper_servers_is_struck_only_where_there_are_several(
    isr: Isr, tmp_path: Path
) -> None:
    """The scenario says how many there are; virtual time and a server of our own have one."""
    story = "cluster: {{zookeeper: {{servers: {}}}}}\nfaults: [{{at: 1s, {}}}]\nrun: 2s\n"
    written = tmp_path / "s.yaml"
    for fault in ("pause: {server: zookeeper-2}", "stop_zookeeper: zookeeper-2"):
        written.write_text(story.format(3, fault))
        name = fault.partition(":")[0]
        for words in ((), ("--target", "simulated"), ("--zookeeper", "docker")):
            code, told = isr.fails("run", written, *words, "--out", tmp_path / "runs")
            assert code == 64
            assert f"{name} at 1 s cannot be given to a cluster " in told
            assert told.endswith(
                "there is one ZooKeeper server: --target containers or compose has several"
            )
        code, told = isr.fails("run", written, "--processes", "--out", tmp_path / "runs")
        assert (code, "there is one ZooKeeper server:" in told) == (64, True)
    written.write_text(story.format(3, "pause: {server: zookeeper-4}"))
    assert (
        "servers are zookeeper, zookeeper-1, zookeeper-2, zookeeper-3"
        in isr.fails("run", written)[1]
    )
    written.write_text(story.format(8, "pause: {broker: 1}"))
    assert "servers: 1 to 7 servers" in isr.fails("run", written)[1]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("target", ["containers", "compose"])
def test_without_an_engine_a_target_of_containers_is_one_line(
    isr: Isr, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    code, told = isr.fails("run", "brief-lag", "--target", target, "--out", tmp_path)
    assert code == 64
    assert told == "isr: no Docker engine answers: No such file or directory"
    with warnings.catch_warnings():  # the SDK leaves the socket open that it could not connect
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_target_in_virtual_time_is_that_of_its_zookeeper(isr: Isr, tmp_path: Path) -> None:
    code, out, _ = isr("run", "brief-lag", "--target", "simulated", "--out", tmp_path, "--json")
    summary = json.loads(out)
    assert (code, summary["zookeeper"]) == (0, "simulated")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("slow_disk: {broker: 1, ms_per_append: 5}", "slow disk is not supported for"),
        ("fail_log_dir: {broker: 1}", "fail log dir is not supported for"),
        ("hold: {broker: 1, at: zookeeper}", "hold is not supported for"),
    ],
)
def test_a_fault_that_processes_cannot_be_given_is_said_before_anything_starts(
    isr: Isr, fault: str, why: str, tmp_path: Path
) -> None:
    story = f"topics: {{t: {{partitions: [[1]]}}}}\nfaults: [{{at: 1s, {fault}}}]\nrun: 2s\n"
    (tmp_path / "s.yaml").write_text(story)
    code, told = isr.fails("run", tmp_path / "s.yaml", "--processes", "--out", tmp_path / "runs")
    name = fault.partition(":")[0]
    assert code == 64
    assert f"{name} at 1 s cannot be given to brokers that are processes of their own:" in told
    assert why in told
    assert not (tmp_path / "runs").exists()
