"""The simulated world on a machine with other load: messages, drivers and brokers wait."""

from __future__ import annotations

from functools import partial

from emulator.conformance.recorder_load import RecorderLoad
from emulator.scenario.schema import Boot, Scenario, ZooKeeperSettings
from emulator.trace.sink import Sink
from emulator.worlds.latency import TABLE, Purpose
from emulator.worlds.simulated import SimulatedWorld

FIXED_US = {
    "stimulus_busy": 80_000,
    "busy_share": 500,
    "net_request": 250,
    "producer_lateness": 0,
    "producer_handover": 100,
    "create_log": 90_000,
}


def world_of_fixed_latencies() -> SimulatedWorld:
    scenario = Scenario(
        name="none",
        about="",
        profile="2.6",
        boots=(Boot(1), Boot(2), Boot(3)),
        settings={},
        broker_settings={},
        zookeeper=ZooKeeperSettings(),
        steps=(),
        duration_us=0,
    )
    rows = {name: ((0.0, us), (1.0, us)) for name, us in FIXED_US.items()}
    fixed = {
        # The speed of an actor changes cold code that is not paced.
        name: Purpose(row, (1, row), paced=True) if name == "create_log" else Purpose(row)
        for name, row in rows.items()
    }
    latencies = {**TABLE, **fixed}
    return SimulatedWorld(scenario, 1, Sink(), machine_load=RecorderLoad, latencies=latencies)


def message_at(world: SimulatedWorld, at_us: int) -> int:
    world.kernel.run(at_us)
    return world.network.latency("net_request", "producer-1")


def test_around_a_action_messages_and_drivers_share_the_cores_with_who_does_it() -> None:
    world = world_of_fixed_latencies()
    assert world.machine_load is not None
    world.machine_load.prepare("pause", 1_000_000)
    assert message_at(world, 900_000) == 250
    assert message_at(world, 940_000) == 250 + 140_000 // 2, "before it"
    assert world.handover_jitter_us("producer-1") == 100 + 140_000 // 2
    assert message_at(world, 1_060_000) == 250 + 20_000 // 2, "and after it"
    assert message_at(world, 1_100_000) == 250
    assert world.handover_jitter_us("producer-1") == 100
    world.close()


def test_a_shell_that_has_just_acted_makes_everyone_slower() -> None:
    world = world_of_fixed_latencies()
    assert world.machine_load is not None
    world.machine_load.shell_at(1_000_000)
    assert message_at(world, 999_999) == 250
    assert message_at(world, 1_000_001) == 500
    assert message_at(world, 1_119_999) == 500
    assert message_at(world, 1_120_000) == 250
    world.close()


def test_cold_code_of_more_than_three_processes_makes_everyone_slower() -> None:
    """A first log takes 90 ms."""
    world = world_of_fixed_latencies()
    for broker in (2, 3, 4, 5, 6):
        process = world.kernel.process(f"broker-{broker}")
        work = world.kernel.checkpoint("create_log")
        at_us = 1_000_000 + broker * 10_000
        process.lane("start").call_at(at_us, partial(process.spawn, "work", work))
    assert message_at(world, 1_041_000) == 250, "three processes, as usual"
    assert message_at(world, 1_051_000) == 250 * 175 // 100, "four"
    assert message_at(world, 1_061_000) == 250 * 250 // 100, "five"
    assert message_at(world, 1_250_000) == 250
    world.close()
