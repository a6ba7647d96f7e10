"""`isr cluster up --containers`: each broker is a container, driven by the same commands as
processes; nothing of it stays, however it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.trace import events
from emulator.worlds.clients.blocking_client import metadata
from tests.containers.conftest import eventually, left_by
from tests.live.processes.test_cluster_command import Cluster, in_foreground
from zk.real.server_container import LABEL

pytestmark = pytest.mark.containers


def test_a_cluster_of_containers_is_driven_by_commands(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with in_foreground(tmp_path, "--containers", "--brokers", "2") as (process, _):
        status = cluster.status
        assert [(one.host, one.state) for one in status.brokers] == [("container", "up")] * 2
        # A client of this machine reaches each broker at the address that it is told.
        for address in status.bootstrap.split(","):
            host, _, port = address.rpartition(":")
            assert len(metadata([(host, int(port))], 10).brokers) == 2
        cluster("create_topic", "orders", "1,2")
        assert cluster("produce", "orders-0", "5") == "send orders [0] 5\n"
        cluster("cut", "1", "2")
        cluster("pause", "2")
        cluster.becomes(2, "paused")
        cluster("heal")
        cluster.becomes(2, "up")
        cluster("kill", "2", "--for", "8s")  # its session has ended by then
        cluster.becomes(2, "dead")
        cluster.becomes(2, "up")
        assert "broker 2: started at" in cluster("logs", "2")
        cluster("down")
        assert process.wait(60) == 0
    assert left_by(f"{LABEL}={process.pid}") == []
    actions = [e.do for e in cluster.trace if isinstance(e, events.ActionApplied)]
    assert {"create_topic", "send", "cut_link", "pause", "resume", "kill", "start"} <= set(actions)


def test_killed_it_leaves_no_container(tmp_path: Path) -> None:
    with in_foreground(tmp_path, "--containers", "--brokers", "1") as (process, _):
        assert left_by(f"{LABEL}={process.pid}")
        process.kill()
    # Its watchdog removes them.
    assert eventually(lambda: left_by(f"{LABEL}={process.pid}") == [])
