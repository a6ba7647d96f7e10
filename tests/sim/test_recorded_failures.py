"""Recordings with crashes, stops, lost ZooKeeper connections or reassignments are matched.

Each recording's actions are played under a few blind seeds; at least one run has the same state
znodes, controllers, registrations and control requests at every broker (points 1, 3 and 4).
"""

from contextlib import closing
from pathlib import Path

import pytest

from emulator.conformance.actions import scenario_of
from emulator.conformance.compare import judge
from emulator.conformance.export import export
from emulator.conformance.recorder_load import RecorderLoad
from emulator.conformance.recording import Recording, read_recording
from emulator.runs.play import Run
from emulator.trace.sink import Sink
from emulator.worlds.simulated import SimulatedWorld

RECORDINGS = Path(__file__).parents[1] / "recordings" / "kafka-2.6.3"
SEEDS = range(9, 13)
"""Four of them; which ones agree depends on the version of the latencies."""


def played(real: Recording, seed: int) -> Recording:
    sink = Sink()
    world = SimulatedWorld(scenario_of(real), seed, sink, machine_load=RecorderLoad)
    with closing(world):
        Run(world).play()
    return export(sink.events, real.settings)


@pytest.mark.parametrize(
    "name",
    [
        "admin-znodes",
        "bounce-unseen",
        "controlled-shutdown",
        "controller-shutdown",
        "leader-crash",
        "leader-loses-zookeeper",
        "min-isr",
        "quick-bounce",
        "reassignment-grow",
        "topic-lifecycle",
        "unclean-election",
    ],
)
def test_what_the_cluster_agreed_on_is_what_it_was(name: str) -> None:
    real = read_recording(RECORDINGS / name)
    verdict = judge(real, [played(real, seed) for seed in SEEDS])
    assert verdict.seeds_agreeing, verdict.nearest_differences
