"""Pictures of the documentation show a whole run."""

from __future__ import annotations

from emulator.trace.values import TopicPartition
from tools.pages.pictures import Drawn


def test_the_picture_of_water_levels_has_every_replica_from_its_start_on() -> None:
    """A run that keeps only the last level of each replica draws an empty picture, and nothing
    fails."""
    run = Drawn("shrink-and-expand")
    levels = run.state.water_levels.levels[TopicPartition("orders", 0)]
    assert sorted(levels) == [1, 2, 3]
    for steps in levels.values():
        assert run.seconds(steps[0].from_us) < 1
        assert {60, 360} <= {step.leo for step in steps}
