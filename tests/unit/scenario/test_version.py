"""Which version a scenario runs: from its file, and from options that win over it."""

from __future__ import annotations

import pytest
import yaml

from emulator.kafka.profiles.guards.isr import JOIN_PAST_EPOCH_START, STAY_AT_LOG_END
from emulator.scenario.actions.life import Start
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.version import VersionOptions
from emulator.scenario.written import write_scenario

SCENARIO = """\
profile: "2.4"
guards: {stay-at-log-end: off}
cluster:
  broker_profile: {3: "2.1"}
faults:
  - {at: 5s, terminate: 3}
  - {at: 9s, start: {broker: 3, profile: "2.6"}}
run: 10s
"""


def read(text: str = SCENARIO, **chosen: object) -> LoadedScenario:
    return loads(text, "tried", "tried.yaml", (), VersionOptions(**chosen))  # type: ignore[arg-type]


def problem(text: str = SCENARIO, **chosen: object) -> str:
    with pytest.raises(UserError) as caught:
        read(text, **chosen)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_brokers_of_one_cluster_run_different_versions() -> None:
    scenario = read()
    assert [scenario.running(broker).name for broker in (1, 2, 3)] == ["2.4", "2.4", "2.1"]
    assert scenario.steps[-1].action == Start(3, profile="2.6")


def test_a_guard_is_switched_at_every_broker() -> None:
    scenario = read()
    assert all(STAY_AT_LOG_END not in scenario.running(broker).guards for broker in (1, 3))
    assert JOIN_PAST_EPOCH_START in scenario.running(1).guards


def test_options_win_over_the_file() -> None:
    scenario = read(profile="2.6", guards=("stay-at-log-end=on", "join-past-epoch-start=off"))
    assert [scenario.running(broker).name for broker in (1, 3)] == ["2.6", "2.1"]
    assert STAY_AT_LOG_END in scenario.running(1).guards
    assert JOIN_PAST_EPOCH_START not in scenario.running(1).guards


def test_a_scenario_is_written_as_it_was_played() -> None:
    played = read(profile="2.6", guards=("join-past-epoch-start=off",))
    again = read(write_scenario(played, played.steps, 10_000_000, settings={}))
    assert (again.profile, again.guards) == (played.profile, played.guards)
    assert again.broker_profiles == played.broker_profiles
    assert again.steps == played.steps


def test_options_stand_on_a_command_line_as_they_were_given() -> None:
    chosen = VersionOptions("2.4", ("stay-at-log-end=off",), "zk")
    words = ["--profile", "2.4", "--guard", "stay-at-log-end=off", "--propagation", "zk"]
    assert (chosen.words(), VersionOptions().words()) == (words, [])


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"profile": "9.9"}, "--profile 9.9: there is no profile 9.9"),
        ({"guards": ("stay-at-log-end",)}, "write NAME=off or NAME=on"),
        ({"guards": ("stay-at-log-ends=off",)}, "did you mean stay-at-log-end?"),
        ({"propagation": "rpc"}, "--propagation rpc: Kafka 2.4 has no propagation rpc, only zk"),
        ({"propagation": "mail"}, "has no propagation mail"),
    ],
)
def test_an_option_that_cannot_be_is_refused(chosen: dict[str, object], said: str) -> None:
    assert said in problem(**chosen)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("profile", "9.9", "tried.yaml:"),
        ("guards", {"stay-at-log-ends": "off"}, "did you mean stay-at-log-end?"),
        ("guards", {"stay-at-log-end": "maybe"}, "expected on or off, not 'maybe'"),
        ("propagation", "rpc", "propagation: Kafka 2.4 has no propagation rpc"),
        ("cluster", {"broker_profile": {3: "9.9"}}, "there is no profile 9.9"),
        ("cluster", {"broker_profile": {4: "2.4"}}, "there is no broker"),
        (
            "cluster",
            {"config": {"replica.lag.max.messages": 3}},
            "Kafka 2.4 has no such setting",
        ),
        ("faults", [{"at": "1s", "start": {"broker": 1, "profile": "7"}}], "no profile 7"),
        (
            "faults",
            [{"at": "1s", "start": {"broker": 1, "profile": "2.6", "propagation": "rpc"}}],
            "Kafka 2.6 has no propagation rpc",
        ),
    ],
)
def test_a_mistake_in_the_file_is_pointed_at(key: str, value: object, said: str) -> None:
    written = yaml.safe_dump({**yaml.safe_load(SCENARIO), key: value})
    assert "tried.yaml:" in problem(written) and said in problem(written)


def test_a_setting_of_an_old_version_is_there_where_its_guard_is_taken_out() -> None:
    text = "guards: {lag-by-time-only: off}\ncluster: {config: {replica.lag.max.messages: 3}}"
    assert read(f"{text}\nrun: 1s").settings == {"replica.lag.max.messages": "3"}
    assert read("profile: 0.8.2\nrun: 1s").running().defaults["replica.lag.max.messages"] == "4000"
