"""The simulated world on a machine with other load: messages and drivers wait."""

from __future__ import annotations

from emulator.conformance.recorder_load import RecorderLoad
from emulator.kernel.scheduler import Kernel
from emulator.scenario.schema import Boot, Scenario, ZooKeeperSettings
from emulator.trace.sink import Sink
from emulator.worlds.simulated import SimulatedWorld

BUSY_US = {"stimulus_busy": 80_000, "busy_share": 500, "net_request": 250, "producer_handover": 100}


def message_at(world: SimulatedWorld, at_us: int) -> int:
    world.kernel.run(at_us)
    return world.network.latency("net_request", "producer-1")


def test_around_a_action_messages_and_drivers_share_the_cores_with_who_does_it() -> None:
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

    def machine_load(kernel: Kernel, _: object) -> RecorderLoad:
        return RecorderLoad(kernel, lambda purpose, _: BUSY_US[purpose])

    world = SimulatedWorld(scenario, 1, Sink(), machine_load=machine_load)
    world.latencies = lambda purpose, _: BUSY_US[purpose]  # type: ignore[assignment]
    assert world.machine_load is not None
    world.machine_load.prepare("pause", 1_000_000)
    assert message_at(world, 900_000) == 250
    assert message_at(world, 940_000) == 250 + 140_000 // 2, "before it"
    assert world.handover_jitter_us("producer-1") == 100 + 140_000 // 2
    assert message_at(world, 1_060_000) == 250 + 20_000 // 2, "and after it"
    assert message_at(world, 1_100_000) == 250
    assert world.handover_jitter_us("producer-1") == 100
    world.close()
