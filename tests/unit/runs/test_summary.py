"""The figures of a run: spreads, verdicts, Kafka's metrics, the progress line."""

from __future__ import annotations

import msgspec
import pytest

from emulator.cli.parts.progress import describe_run
from emulator.runs.broken import Broken
from emulator.runs.summary import (
    Progress,
    RunFacts,
    Spread,
    Summary,
    as_json,
    kafka_metrics,
    spread,
    summarize,
)
from emulator.scenario.expectations.base import Finding, parse
from tests.unit.scenario.story import Story, observe

RUN = RunFacts(
    scenario="tried",
    seed=1,
    profile="2.6",
    zookeeper="embedded",
    time_scale=1,
    settings={},
    run_directory="runs/tried/x",
    virtual_us=20_000_500,
    wall_ms=3,
    kernel_late_us_max=1_500,
    interrupted=False,
    kernel_was_late=False,
)


def summary(story: Story, *held: bool | None, run: RunFacts = RUN) -> Summary:
    findings = [(parse("notifications: 1"), Finding(one, "")) for one in held]
    return summarize(run, observe(story), findings)


def late(*, interrupted: bool) -> RunFacts:
    changed = {"interrupted": interrupted, "kernel_was_late": not interrupted}
    return RunFacts(**{**{name: getattr(RUN, name) for name in RUN.__struct_fields__}, **changed})


def test_the_middle_of_an_even_number_is_the_lower_one() -> None:
    assert spread([4000, 1000, 2000, 3000]) == Spread(1, 2, 4)
    assert spread([1500]) == Spread(1.5, 1.5, 1.5)
    assert spread([]) == Spread(None, None, None)


@pytest.mark.parametrize(
    ("held", "verdict"),
    [
        ((True, True), "held"),
        ((), "held"),
        ((True, None), "unknown"),
        ((None, False), "not held"),
    ],
)
def test_the_verdict_is_the_worst_of_what_was_expected(
    held: tuple[bool | None, ...], verdict: str
) -> None:
    assert summary(Story().created(), *held).verdict == verdict


def test_a_run_that_was_broken_off_or_late_proves_nothing_either_way() -> None:
    for run in (late(interrupted=True), late(interrupted=False)):
        assert summary(Story().created(), False, run=run).verdict == "unknown"


@pytest.mark.parametrize(
    ("hazards", "verdict"), [(("KAFKA-9672",), "held"), (("KAFKA-9672", ""), "not held")]
)
def test_a_broken_invariant_counts_unless_a_hazard_explains_it(
    hazards: tuple[str, ...], verdict: str
) -> None:
    broken = tuple(Broken("leader in isr", "", one, None, 1, (1, 2), ()) for one in hazards)
    run = msgspec.structs.replace(RUN, violations=broken)
    assert summary(Story(), True, run=run).verdict == verdict


def test_whole_milliseconds_are_whole_numbers() -> None:
    found = as_json(summary(Story().created()))
    assert (found["virtual_ms"], found["kernel_late_ms_max"]) == (20000.5, 1.5)
    assert found["propagation_ms"] == {"min": None, "p50": None, "max": None}
    assert found["notifications_per_change"] is None


def test_kafkas_metrics_carry_kafkas_names() -> None:
    story = Story().created().at(5).written(1, 1, 3).at(6).written(2, 1, 3, 2, change="expand")
    metrics = kafka_metrics(observe(story, end=10))
    prefix = "kafka.server:type=ReplicaManager,name="
    assert metrics[f"{prefix}IsrShrinksPerSec"] == {"Count": 1, "MeanRate": 0.1}
    assert metrics[f"{prefix}UnderReplicatedPartitions"] == {"Value": 0, "Max": 1}
    assert metrics[f"{prefix}PartitionCount"] == {"Value": 1}


def test_the_progress_line_counts_what_the_summary_counts() -> None:
    story = Story().action("up").created().at(5).written(1, 1, 3).notified()
    progress = Progress.of(observe(story, end=7))
    assert progress == Progress(7_000_000, 1, 1, 1, 0)
    assert summary(story).isr_changes == progress.isr_changes


def test_before_anything_is_told_the_line_has_the_time_alone() -> None:
    """Brokers that are processes tell what happened when the run is over."""
    progress = Progress.of(observe(Story(), end=0), 7_000_000)
    assert describe_run(progress).strip() == "7.0 s"
