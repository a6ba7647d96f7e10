"""An action occupies the cores for a while, which delays other work."""

from __future__ import annotations

from emulator.conformance.recorder_load import RecorderLoad
from emulator.kernel.scheduler import Kernel
from emulator.trace.sink import Sink

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
