"""A run as a recording: what recordings' drivers and first lines have beside the facts."""

from __future__ import annotations

import pytest

from emulator.conformance.actions import scenario_of
from emulator.conformance.export import export
from emulator.conformance.recording import Recording
from emulator.trace import events
from emulator.trace.events import AnyEvent
from emulator.trace.values import Parameters, PartitionState, TopicPartition

UP_US = 2_000_000
SETTINGS = {"kafka": "2.6.3"}


def produced(answered_ms: int, told_ms: int | None) -> events.RecordsProduced:
    return events.RecordsProduced(
        0,
        UP_US + answered_ms * 1000,
        0,
        "producer-1",
        -1,
        "producer-1",
        TopicPartition("orders", 0),
        "all",
        "ok",
        0,
        1,
        UP_US,
        0 if told_ms is None else UP_US + told_ms * 1000,
    )


@pytest.mark.parametrize(
    ("answered_ms", "next_round_ms", "told_ms"), [(3, 51, 51), (51, 51, 51), (110, None, 110)]
)
def test_a_result_is_told_at_the_next_round_of_its_driver_late_as_that_is(
    answered_ms: int, next_round_ms: int | None, told_ms: int
) -> None:
    """At once if there is no further round."""
    trace: list[AnyEvent] = [
        events.ActionApplied(0, UP_US, 0, "", -1, "up", Parameters()),
        produced(answered_ms, next_round_ms),
    ]
    (result,) = export(trace, SETTINGS).results
    assert result.t == told_ms


def test_a_boot_has_the_moments_of_its_launch_and_its_first_registration() -> None:
    def fact(t: int, do: str) -> dict[str, object]:
        return {"t": t, "kind": "stimulus", "do": do, "broker": 2}

    told = [(-9000, "start"), (-4000, "registered"), (50, "start"), (900, "registered")]
    scenario = scenario_of(Recording(SETTINGS, [fact(t, do) for t, do in told]))
    (boot,) = scenario.boots
    assert (boot.launched_us, boot.registered_us) == (-9_000_000, -4_000_000)
    assert [step.at_us for step in scenario.steps] == [50_000]


@pytest.mark.parametrize(
    ("noted_ms", "stopped_ms"),
    [(1002, 1002), (1050, 1050), (1051, 1000), (6019, 1000)],
)
def test_a_producer_stops_after_as_many_rounds_as_were_recorded(
    noted_ms: int, stopped_ms: int
) -> None:
    """Its stop is noted when all is flushed: five seconds later, where a leader never answers."""
    who = {"kind": "stimulus", "topic": "o", "acks": "all"}
    told = [
        {**who, "t": 0, "do": "produce", "partitions": [0], "rate": 20},
        {**who, "t": noted_ms, "do": "produce_stop", "sent": 20},
    ]
    _, stop = scenario_of(Recording(SETTINGS, told)).steps
    assert stop.at_us == stopped_ms * 1000


@pytest.mark.parametrize(("kafka", "is_logged"), [("0.10.2.2", False), ("1.0.2", True)])
def test_a_recording_has_only_what_its_version_logs(kafka: str, *, is_logged: bool) -> None:
    """Up to 0.10 nothing is logged of new replicas, and a truncation whether or not one was."""
    partition = TopicPartition("orders", 0)
    state = PartitionState(partition, 1, 1, 0, (1, 2), 0, (1, 2), is_new=True)
    trace: list[AnyEvent] = [
        events.ActionApplied(0, UP_US, 0, "", -1, "up", Parameters()),
        events.LeaderAndIsr(1, UP_US, 2, "", -1, 3, 1, state),
        events.LogTruncated(2, UP_US, 2, "", -1, partition, 7, 5),
    ]
    exported = export(trace, {"kafka": kafka})
    assert any(exported.of("log_truncated")) is is_logged
    assert ("is_new" in exported.fields("leader_and_isr")) is is_logged


def test_a_start_that_may_find_the_broker_running_is_a_stimulus_only_if_a_process_starts() -> None:
    trace: list[AnyEvent] = [
        events.ActionApplied(0, UP_US, 0, "", -1, "up", Parameters()),
        events.ActionApplied(1, UP_US, 1, "", -1, "start", Parameters(if_down=True)),
        events.ActionApplied(2, UP_US + 1000, 2, "", -1, "start", Parameters(if_down=True)),
        events.BrokerStarting(3, UP_US + 1000, 2, "", 2, "2.6"),
    ]
    starts = [fact for fact in export(trace, SETTINGS).events if fact["do"] == "start"]
    assert starts == [{"t": 1, "kind": "stimulus", "do": "start", "broker": 2}]


def test_a_start_is_one_stimulus_although_its_process_begins_later() -> None:
    """A second one began the delay of whatever was written before the registration anew."""
    trace: list[AnyEvent] = [
        events.BrokerStarting(0, 1000, 3, "", -1, "2.6"),
        events.ActionApplied(1, UP_US, 0, "", -1, "up", Parameters()),
        events.ActionApplied(2, UP_US + 5_000, 3, "", -1, "start", Parameters()),
        events.BrokerStarting(3, UP_US + 505_000, 3, "", 2, "2.6"),
        events.BrokerExited(4, UP_US + 900_000, 3, "", -1),
        events.ActionApplied(5, UP_US + 2_000_000, 3, "", -1, "start", Parameters()),
        events.BrokerStarting(6, UP_US + 2_500_000, 3, "", 5, "2.6"),
    ]
    starts = [fact["t"] for fact in export(trace, SETTINGS).events if fact["do"] == "start"]
    assert starts == [(1000 - UP_US) // 1000, 5, 2000]


def test_a_process_ends_before_the_next_one_starts_in_the_same_millisecond() -> None:
    exited = {"t": 9, "kind": "stimulus", "do": "exited", "broker": 1}
    trace: list[AnyEvent] = [
        events.ActionApplied(0, UP_US, 0, "", -1, "up", Parameters()),
        events.BrokerStarting(1, UP_US + 9_000, 1, "", -1, "2.6"),
    ]
    assert [fact["do"] for fact in export(trace, SETTINGS, exits=[exited]).events] == [
        "up",
        "exited",
        "start",
    ]


@pytest.mark.parametrize(
    ("cause", "proposed_us", "is_exported"), [(1, 30, False), (-1, 0, False), (-1, 30, True)]
)
def test_an_expansion_that_is_proposed_is_recorded_as_the_proposal(
    cause: int, proposed_us: int, *, is_exported: bool
) -> None:
    """Of ours the cause tells; of a real broker among ours, that its log has one line for both."""
    orders = TopicPartition("orders", 0)
    expansion = events.IsrUpdateStarted(
        1, UP_US, 2, "", -1, orders, "expand", (2,), (2, 1), -1, -1, 0, 1
    )
    proposal = events.AlterIsrProposed(
        2, UP_US + proposed_us, 2, "", cause, orders, (2, 1), 0, 1, "PendingExpandIsr"
    )
    up = events.ActionApplied(0, UP_US, 0, "", -1, "up", Parameters())
    exported = export([up, expansion, proposal], {"kafka": "2.7.2"})
    assert any(exported.of("expand")) is is_exported
    assert any(exported.of("alter_isr_proposed"))


TOPIC = "/brokers/topics/t"


@pytest.mark.parametrize(
    ("do", "named", "at_ms", "path", "noted_ms"),
    [
        ("reassign", Parameters(topic="t"), 113, TOPIC, 113),
        ("reassign", Parameters(topic="t"), 113, "/brokers/topics/u", 100),
        ("reassign", Parameters(topic="t"), 501, TOPIC, 100),
        ("reassign", Parameters(topic="t", through="znode"), 113, TOPIC, 100),
        ("preferred_election", Parameters(), 103, f"{TOPIC}/partitions/0/state", 103),
        ("preferred_election", Parameters(), 103, "/config/topics/t", 100),
        ("delete_controller", Parameters(), 103, "/admin/delete_topics", 100),
    ],
    ids=["a topic", "another", "too late", "command znode", "any", "not any", "a shell"],
)
def test_a_clients_request_is_noted_when_a_broker_asks_zookeeper_for_what_it_is_about(
    do: str, named: Parameters, at_ms: int, path: str, noted_ms: int
) -> None:
    """As a recorder notes it; the play itself has the moment when it is sent."""
    trace: list[AnyEvent] = [
        events.ActionApplied(0, UP_US, 0, "", -1, "up", Parameters()),
        events.ActionApplied(1, UP_US + 100_000, 0, "", -1, do, named),
        events.ZkRequest(2, UP_US + at_ms * 1000, 2, "controller", 1, "getData", path, False),
    ]
    _, stimulus = export(trace, SETTINGS).of("stimulus")
    assert stimulus["t"] == noted_ms
    _, stimulus = export(trace, SETTINGS, is_play=False).of("stimulus")
    assert stimulus["t"] == 100
