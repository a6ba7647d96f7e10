"""`--zookeeper docker`: a server in a container, started, waited for, struck, and never left."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from subprocess import PIPE, Popen
from typing import Any

import pytest

from tests.command import Isr
from tests.containers.conftest import eventually
from tests.containers.playing import PLAYS, say_lost
from zk.real.server import (
    Address,
    StartFailed,
    ensure_chroot,
    four_letter_word,
    require_session_timeout,
    wait_until_ready,
)
from zk.real.server_container import LABEL, SERVES_TIMEOUT_MS, ContainerServer, engine

pytestmark = pytest.mark.containers

CHILD = """
from zk.real.server_container import ContainerServer
with ContainerServer():
    print("up", flush=True)
    input()
"""


def ours(pid: int = 0) -> list[Any]:
    """Containers of ZooKeeper servers that a process, or this one, started."""
    label = f"{LABEL}={pid or os.getpid()}"
    client = engine()
    try:
        return list(client.containers.list(all=True, filters={"label": label}))
    finally:
        client.close()


def said(server: ContainerServer, word: str) -> str:
    """Its answer; on a busy machine it may take more than the two seconds of one question."""
    return str(eventually(lambda: four_letter_word(server.address.servers[0], word)))


def test_it_serves_with_the_times_that_were_asked_for_and_goes_with_its_volumes() -> None:
    with ContainerServer(500, 1000, 9000) as server:
        assert [one.name for one in ours()] == [server.name]
        assert "Mode: standalone" in said(server, "srvr")
        require_session_timeout(server.address, 1000)
        require_session_timeout(server.address, 9000)
    assert ours() == []


def test_killed_and_launched_again_it_has_its_data_and_its_address() -> None:
    with ContainerServer() as server:
        own = Address(server.address.servers, "/kept")
        ensure_chroot(own)
        before = said(server, "srvr")
        server.stop()
        assert not server.is_started
        server.launch()
        wait_until_ready(server.address, SERVES_TIMEOUT_MS)
        after = said(server, "srvr")
        nodes = [
            line for text in (before, after) for line in text.splitlines() if "Node count" in line
        ]
        assert nodes[0] == nodes[1]


def test_paused_it_answers_nobody_and_resumed_it_does() -> None:
    with ContainerServer() as server:
        server.pause()
        with pytest.raises(OSError, match="timed out"):
            four_letter_word(server.address.servers[0], "srvr")
        server.resume()
        server.resume()
        assert "Mode" in said(server, "srvr")


def test_an_image_that_is_not_there_is_told_and_leaves_nothing() -> None:
    with (
        pytest.raises(StartFailed, match="nobody/has-this"),
        ContainerServer(image="nobody/has-this"),
    ):
        pass
    assert ours() == []


def test_killed_ourselves_the_container_goes_too() -> None:
    with Popen([sys.executable, "-c", CHILD], stdin=PIPE, stdout=PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        assert len(ours(child.pid)) == 1
        child.send_signal(signal.SIGKILL)
    eventually(lambda: ours(child.pid) == [])


@pytest.mark.parametrize("scenario", ["shrink-and-expand", "zookeeper-stall"])
def test_a_scenario_is_held_on_it_faults_on_the_server_included(
    isr: Isr, tmp_path: object, scenario: str
) -> None:
    """Whether the kernel was late, which a busy machine decides, is not asked here."""
    arguments = ("--zookeeper", "docker", "--time-scale", 2, "--out", tmp_path)
    for _ in range(PLAYS):
        code, out, err = isr("run", scenario, *arguments)
        assert ours() == []
        if code in (0, 2):
            break
        say_lost(scenario, out)
    assert code in (0, 2), out + err
    assert "held  " in out


def test_without_an_engine_it_is_one_line(isr: Isr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    code, told = isr.fails("run", "shrink-and-expand", "--zookeeper", "docker")
    assert code == 64
    assert told == "isr: no Docker engine answers: No such file or directory"
    with warnings.catch_warnings():  # the SDK leaves the socket open that it could not connect
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
