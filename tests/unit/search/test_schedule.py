"""A schedule as a file: written, read again, and errors in malformed files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.runs.broken import Broken
from emulator.scenario.errors import UserError
from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.search.schedules.schedule import (
    Choice,
    Injection,
    Schedule,
    read_schedule,
    schedule_of,
    written,
)

TEXT = """\
about: A follower stands still.
guards: {maximal-isr: off}
cluster: {brokers: 3, config: {replica.lag.time.max.ms: 2000}}
topics: {orders: {partitions: 1, replication: 3}}
workload: [{produce: orders, rate: 20, from: 2s, until: 12s}]
faults: [{at: 3s, pause: {broker: 3}, for: 6s}]
run: 25s
"""
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)
CHOICES = st.builds(Choice, st.integers(0, 99), st.integers(1, 9), st.integers(2, 10), WORDS)
INJECTIONS = st.builds(
    Injection, st.integers(0, 99), st.just("pause 3"), st.sampled_from(["", "8s"])
)
FOUND = st.none() | st.builds(Broken, WORDS, WORDS)


def bare(profile: str = "2.7") -> Schedule:
    chosen = VersionOptions(profile, ("clear-before-callback=on",))
    return schedule_of(loads(TEXT, "still", chosen=chosen), 0x1F, begins="3s", liveness=True)


@given(st.lists(CHOICES), st.lists(INJECTIONS), FOUND)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
def test_what_is_written_is_read_again(
    tmp_path: Path, choices: list[Choice], injections: list[Injection], found: Broken | None
) -> None:
    schedule = bare()
    schedule = type(schedule)(
        **{name: getattr(schedule, name) for name in schedule.__struct_fields__}
        | {"choices": tuple(choices), "faults": tuple(injections), "violation": found}
    )
    file = tmp_path / "schedule.yaml"
    file.write_text(written(schedule), encoding="utf-8")
    assert read_schedule(file) == schedule
    assert schedule.length == len(choices) + len(injections)


def test_version_and_guards_come_from_the_schedule() -> None:
    scenario = bare().loaded()
    assert scenario.profile == "2.7"
    assert scenario.guards == {"maximal-isr": False, "clear-before-callback": True}
    assert scenario.duration_us == 25_000_000
    assert [step.action.name for step in scenario.steps if step.fault] == ["pause", "resume"]


def test_timeouts_of_schedules_kept_before_have_their_label(tmp_path: Path) -> None:
    was = Choice(
        7, 1, 2, "broker-1 main-EventThread: lambda", "broker-2 main: lambda; broker-3 a: b"
    )
    fields = {name: getattr(bare(), name) for name in bare().__struct_fields__}
    (tmp_path / "kept.yaml").write_text(written(Schedule(**fields | {"choices": (was,)})))
    (now,) = read_schedule(tmp_path / "kept.yaml").choices
    assert now.what == "broker-1 main-EventThread: timeout"
    assert now.over == "broker-2 main: timeout; broker-3 a: b"


def test_it_reads_as_people_write() -> None:
    injections = (Injection(4, "pause 3", "8s"),)
    choices = (Choice(7, 1, 2, "broker-1 main-EventThread: wake"),)
    fields = {name: getattr(bare(), name) for name in bare().__struct_fields__}
    text = written(Schedule(**fields | {"faults": injections, "choices": choices}))
    assert "  - {step: 4, do: pause 3, for: 8s}\n" in text
    assert "  - {step: 7, take: 1, of: 2, what: 'broker-1 main-EventThread: wake'}\n" in text
    assert "profile: '2.7'\n" in text
    assert "begins: 3s\n" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run: 5s\n", "not a schedule: no key `schedule`"),
        ("[", "not valid YAML"),
        ("schedule: 1\nname: x\nscenario: {}\n", "missing required field `seed`"),
        ("schedule: 9\nname: x\nseed: 1\nscenario: {}\n", "format 9, this is 2"),
        ("schedule: 1\nname: x\nseed: 1\nscenario: {}\nchoice: []\n", "unknown field `choice`"),
        (
            "schedule: 1\nname: x\nseed: 1\nscenario: {}\nfaults: [{step: a, do: pause 3}]\n",
            "$.faults[0].step",
        ),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_schedule(file)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("schedule: " + "[" * 100_000, "nested too deeply"),
        ("schedule: !!timestamp x", "tags are not read here"),
        ('schedule: "\\uD800"', "invalid Unicode character"),
        ("schedule: 2001-99-99", "not valid YAML: month must be in 1..12"),
        ("schedule: " + "9" * 5000, "not valid YAML: Exceeds the limit"),
    ],
)
def test_a_file_that_yaml_itself_falls_over_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "hostile.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=why):
        read_schedule(file)
