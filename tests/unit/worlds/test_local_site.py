"""This machine as the place of a run's brokers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.worlds.processes.local_site import LocalDeployment
from tests.sim.shipped_runs import scenario


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LocalDeployment]:
    made = LocalDeployment(scenario("shrink-and-expand"), tmp_path / "zookeeper", tmp_path)
    yield made
    made.close()


def test_a_brokers_port_is_its_own_and_nobody_elses(site: LocalDeployment) -> None:
    """Even while it is not running: neither a request for any port nor for this one gets it."""
    where = site.advertised_address(1)
    with socket.create_server(where), socket.create_connection(where):
        pass
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(where)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where)


def test_each_broker_has_another_one(site: LocalDeployment) -> None:
    assert len({site.advertised_address(broker) for broker in (1, 2, 3)}) == 3
    assert all(site.address_of(broker) == site.advertised_address(broker) for broker in (1, 2, 3))
