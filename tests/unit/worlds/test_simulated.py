"""The simulated world: what whoever does a stimulus takes from the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.scenario.schema import Boot, Scenario, ZooKeeperSettings
from emulator.trace.sink import Sink
from emulator.worlds.recorder_load import Cores
from emulator.worlds.simulated import SimulatedWorld

BUSY_US = {"stimulus_busy": 80_000, "busy_share": 500, "net_request": 250, "producer_handover": 100}


@pytest.fixture
def world() -> Iterator[SimulatedWorld]:
    scenario = Scenario(
        name="none",
        about="",
        profile="2.6",
        boots=(Boot(1),),
        settings={},
        broker_settings={},
        zookeeper=ZooKeeperSettings(),
        steps=(),
        duration_us=0,
    )
    world = SimulatedWorld(scenario, 1, Sink())
    world.latencies = lambda purpose, _: BUSY_US[purpose]  # type: ignore[assignment]
    world.cores = Cores(world.kernel, world.latencies)
    yield world
    world.close()


def message_at(world: SimulatedWorld, at_us: int) -> int:
    world.kernel.run(at_us)
    return world.network.latency("net_request", "producer-1")


def test_around_a_stimulus_messages_and_drivers_share_the_cores_with_who_does_it(
    world: SimulatedWorld,
) -> None:
    world.prepare("pause", 1_000_000)
    assert message_at(world, 900_000) == 250
    assert message_at(world, 940_000) == 250 + 140_000 // 2, "before it"
    assert world.handover_jitter_us("producer-1") == 100 + 140_000 // 2
    assert message_at(world, 1_060_000) == 250 + 20_000 // 2, "and after it"
    assert message_at(world, 1_100_000) == 250
    assert world.handover_jitter_us("producer-1") == 100
