"""An action occupies the cores for a while, which delays other work."""

from __future__ import annotations

import pytest

from emulator.conformance.recorder_load import RecorderLoad
from emulator.kernel.rng import Chance
from emulator.kernel.scheduler import Kernel, Task
from emulator.trace.sink import Sink
from emulator.worlds.latency import Latencies, Purpose

DRAWN = {"stimulus_busy": 80_000, "busy_share": 250}


def late_at(cores: RecorderLoad, kernel: Kernel, at_us: int) -> int:
    kernel.run(at_us)
    return cores.delay_us("broker-1")


def test_before_and_after_a_action_a_share_of_what_is_left_of_it() -> None:
    kernel = Kernel(Sink())
    cores = RecorderLoad(kernel, lambda purpose, _: DRAWN[purpose])
    cores.prepare("kill", 1_000_000)
    assert late_at(cores, kernel, 919_999) == 0
    assert late_at(cores, kernel, 920_000) == 160_000 // 4
    assert late_at(cores, kernel, 1_040_000) == 40_000 // 4
    assert late_at(cores, kernel, 1_080_000) == 0


def test_one_that_takes_nothing_leaves_the_cores_alone() -> None:
    kernel = Kernel(Sink())
    cores = RecorderLoad(kernel, lambda purpose, _: DRAWN[purpose] * (purpose == "busy_share"))
    cores.prepare("kill", 1_000_000)
    assert late_at(cores, kernel, 1_000_000) == 0


@pytest.mark.parametrize(("processes", "ms"), [(1, 100), (3, 100), (4, 175), (5, 250)])
def test_first_logs_take_longer_when_more_than_three_processes_make_theirs(
    processes: int, ms: int
) -> None:
    kernel = Kernel(Sink())
    work = ((0.0, 100_000), (1.0, 100_000))
    table = {"create_log": Purpose(((0.0, 0), (1.0, 0)), (1, work), paced=True, crowded=1)}
    load = RecorderLoad(kernel, Latencies(Chance(1), table))
    ended_us: list[int] = []

    async def make_log() -> None:
        assert isinstance(kernel.current, Task)
        await load.charge("create_log", kernel.current)
        ended_us.append(kernel.now)

    for n in range(processes):
        kernel.process(f"broker-{n}").spawn("main", make_log())
    kernel.run(1_000_000)
    assert ended_us == [ms * 1000] * processes


WAYS = {"net_request": 250, "net_control_request": 2100, "net_proxy": 500}


@pytest.mark.parametrize(
    ("purpose", "actor", "us"),
    [
        ("net_request", "broker-1-fetcher-0", 750),
        ("net_request", "producer-1-produce", 250),
        ("net_control_request", "controller-1", 2100),
    ],
)
def test_proxies_delay_what_brokers_send_each_other(purpose: str, actor: str, us: int) -> None:
    """Clients have a listener of their own."""
    table = {way: Purpose(((0.0, us), (1.0, us))) for way, us in WAYS.items()}
    load = RecorderLoad(Kernel(Sink()), Latencies(Chance(1), table), has_proxies=True)
    assert load.work_us(purpose, actor) == us
    assert (
        RecorderLoad(Kernel(Sink()), Latencies(Chance(1), table)).work_us(purpose, actor)
        == (WAYS[purpose])
    )
