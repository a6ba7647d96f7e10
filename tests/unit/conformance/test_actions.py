"""What a recording's first line does not say, and its requests show."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.conformance.actions import scenario_of
from emulator.conformance.recording import Recording
from emulator.runs.play import PlayOptions
from emulator.runs.session import play_without_listeners
from emulator.scenario.actions.life import Start
from emulator.search.guided.choices import inputs_of
from emulator.trace import events as e

WATCHES = {
    "kind": "zookeeper_request",
    "t": -100,
    "broker": 1,
    "op": "exists",
    "path": "/admin/delete_topics",
    "watch": True,
}
STARTED = {"kind": "stimulus", "t": -900, "do": "start", "broker": 1}


@pytest.mark.parametrize(
    ("kafka", "watches", "enabled"),
    [("0.8.2.2", True, "true"), ("0.8.2.2", False, None), ("0.10.2.2", True, None)],
)
def test_up_to_0_9_a_controller_that_watches_deletions_has_them_enabled(
    kafka: str, watches: bool, enabled: str | None
) -> None:
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": kafka}
    facts = [STARTED, {**WATCHES, "watch": watches}]
    scenario = scenario_of(Recording(settings, facts, [], "recorded"))
    assert scenario.settings.get("delete.topic.enable") == enabled


def test_brokers_have_the_ports_that_they_registered() -> None:
    registered = {
        "kind": "zookeeper",
        "t": -100,
        "broker": 1,
        "ops": [
            {"op": "create", "path": "/brokers/ids/1"},
            {"op": "setData", "path": "/brokers/ids/1", "data": '{"host":"h","port":45525}'},
        ],
    }
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": "2.6.3"}
    started = [STARTED, {**STARTED, "broker": 2}]
    scenario = scenario_of(Recording(settings, [*started, registered], [], "recorded"))
    assert scenario.ports == {1: 45525}


@pytest.mark.parametrize(("kafka", "called_us"), [("0.10.2.2", 89_000), ("0.9.0.1", 100_000)])
def test_a_topic_was_asked_for_before_the_broker_read_or_written_then_by_a_tool(
    kafka: str, called_us: int
) -> None:
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": kafka}
    create = {"kind": "stimulus", "t": 100, "do": "create_topic", "topic": "orders"}
    scenario = scenario_of(Recording(settings, [STARTED, create], [], "recorded"))
    assert [step.at_us for step in scenario.steps] == [called_us]


MOVE = {"topic": "orders", "partition": 0, "replicas": [2]}


@pytest.mark.parametrize(
    ("kafka", "through", "called_us"),
    [("2.6.3", "api", 87_000), ("2.6.3", "znode", 100_000), ("2.1.1", "api", 100_000)],
)
def test_a_request_was_sent_before_a_broker_asked_zookeeper_for_its_topic(
    kafka: str, through: str, called_us: int
) -> None:
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": kafka}
    move = {"kind": "stimulus", "t": 100, "do": "reassign", "through": through, **MOVE}
    scenario = scenario_of(Recording(settings, [STARTED, move], [], "recorded"))
    assert [step.at_us for step in scenario.steps] == [called_us]


CHECK = {"op": "exists", "path": "/admin/reassign_partitions"}


@pytest.mark.parametrize(
    ("requests", "called_us"),
    [
        ([(2116, {"op": "connect"}), (2121, {"op": "setWatches"}), (2121, CHECK)], 1_603_000),
        ([(2116, {"op": "connect"}), (2121, CHECK), (2127, {"op": "multi"})], 1_603_000),
        ([(2121, CHECK)], 2_114_000),
        ([(2100, {"op": "connect"}), (2110, {"op": "getData"}), (2121, CHECK)], 2_114_000),
        ([(2116, {"op": "connect"}), (2121, CHECK), (2125, {"op": "getData"})], 2_114_000),
    ],
    ids=["lost", "without watches", "not lost", "another request", "not its check"],
)
def test_a_reassignment_whose_check_was_lost_with_the_connection_was_requested_before(
    requests: list[tuple[int, dict[str, str]]], called_us: int
) -> None:
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": "2.6.3"}
    asks = [{"kind": "zookeeper_request", "t": t, "broker": 2, **what} for t, what in requests]
    move = {"kind": "stimulus", "t": 2127, "do": "reassign", **MOVE}
    scenario = scenario_of(Recording(settings, [STARTED, *asks, move], [], "recorded"))
    assert [step.at_us for step in scenario.steps] == [called_us]


@pytest.mark.parametrize(("last_ms", "plays_until_ms"), [(4_000, 8_000), (9_500, 9_501)])
def test_a_play_goes_on_as_long_as_its_recording(last_ms: int, plays_until_ms: int) -> None:
    """A recorder ends 3 s after the last action; a slow one notes what comes later."""
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": "2.6.3"}
    resumed = {"kind": "stimulus", "t": 5000, "do": "resume", "broker": 1}
    real = Recording(
        settings, [STARTED, resumed, {"kind": "expand", "t": last_ms, "broker": 1}], [], "recorded"
    )
    assert scenario_of(real).duration_us == plays_until_ms * 1000
    assert scenario_of(inputs_of(real)).duration_us == plays_until_ms * 1000


@pytest.mark.parametrize(("said", "remembers"), [({}, True), ({"administrator": "retries"}, False)])
def test_the_admin_client_of_older_recordings_remembers_the_controller(
    said: dict[str, str], remembers: bool
) -> None:
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": "2.6.3", **said}
    scenario = scenario_of(Recording(settings, [STARTED], [], "recorded"))
    assert (scenario.remembers_controller, scenario.settings) == (remembers, {})


@pytest.mark.parametrize("lived_ms", [200, 9000])
def test_a_process_that_ended_before_its_registration_boots_as_long_as_the_others(
    lived_ms: int,
) -> None:
    """A JVM is silent at first; it may end before it has sent anything (random scripts 123 and
    126)."""
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": "2.6.3"}
    facts = [
        STARTED,
        {"kind": "stimulus", "t": 1100, "do": "registered", "broker": 1},
        {"kind": "stimulus", "t": 5000, "do": "terminate", "broker": 1},
        {**STARTED, "t": 20_000},
        {"kind": "stimulus", "t": 20_000 + lived_ms, "do": "terminate", "broker": 1},
        {"kind": "stimulus", "t": 20_000 + lived_ms, "do": "exited", "broker": 1},
    ]
    scenario = scenario_of(Recording(settings, facts, [], "recorded"))
    (start,) = (step.action for step in scenario.steps if isinstance(step.action, Start))
    assert start.registered_ms == 20_000 + 2000
    events = play_without_listeners(scenario, PlayOptions(seed=1))
    registered = [event.t for event in events if isinstance(event, e.BrokerRegistered)]
    assert len(registered) == (2 if lived_ms > 2000 else 1)
    booted = [event for event in events if isinstance(event, e.BrokerStarting)]
    assert len(booted) == len(registered)
