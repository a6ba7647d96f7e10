"""The file of a guided match: what it holds, what it must not hold, and when it is refused."""

import json
from pathlib import Path

import pytest

from emulator.conformance.player import script_of
from emulator.conformance.recording import Fact, Recording, read_recording
from emulator.search.guided.choices import (
    BadChoices,
    Choices,
    choices_of,
    chosen_run,
    read_choices,
    replay,
    script_from,
    with_other_latencies,
    write_choices,
)
from emulator.worlds.latency import TABLE, VERSION

RECORDINGS = Path(__file__).parents[3] / "recordings"
FOLDER = RECORDINGS / "repeats/kafka-2.6.3/random-pauses-6/1"
RECORDED = sorted(file.parent for file in RECORDINGS.glob("[gk]*/**/recording.jsonl.gz"))
"""All but those for figures and the repeats."""
CHOSEN = {(0, "", ""): 2**64 - 1, (3, "broker-1", "net_request"): 5, (3, "broker-1", ""): 6}


@pytest.fixture(scope="module")
def real() -> Recording:
    return read_recording(FOLDER)


@pytest.fixture
def choices(real: Recording) -> Choices:
    runs = [chosen_run(9, CHOSEN), chosen_run(10, {})]
    return choices_of(real, runs, {"0": 1, "3-4": 20})


def test_written_and_read_it_is_the_same(choices: Choices, tmp_path: Path) -> None:
    write_choices(choices, tmp_path / "choices.json")
    assert read_choices(tmp_path / "choices.json") == choices
    assert [run.by_stream for run in choices.runs] == [CHOSEN, {}]


def test_it_holds_settings_and_actions_and_nothing_of_what_happened(
    choices: Choices, real: Recording
) -> None:
    assert {fact["kind"] for fact in choices.actions} == {"stimulus"}
    told = {key for fact in choices.actions for key in fact}
    assert told.isdisjoint({"returned", "controller"})


@pytest.mark.parametrize("folder", RECORDED, ids=lambda it: it.name)
def test_its_script_is_that_of_the_recording(folder: Path) -> None:
    real = read_recording(folder)
    assert script_from(choices_of(real, [], {})) == script_of(real)


def test_choices_from_other_latencies_are_refused(choices: Choices, tmp_path: Path) -> None:
    file = tmp_path / "choices.json"
    write_choices(choices, file)
    text = file.read_text().replace(f'"latencies": {VERSION}', f'"latencies": {VERSION + 1}')
    file.write_text(text)
    with pytest.raises(BadChoices, match=f"version {VERSION + 1}; those here are version"):
        read_choices(file)


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", '{"recording": 3}', "\x00"])
def test_what_is_no_file_of_choices_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "choices.json").write_text(text)
    with pytest.raises(BadChoices, match=r"choices\.json"):
        read_choices(tmp_path / "choices.json")
    with pytest.raises(BadChoices, match="missing"):
        read_choices(tmp_path / "missing.json")


def test_a_rerun_redraws_latencies_and_nothing_else(choices: Choices) -> None:
    kept = [
        "boot.propagation", "resume_thread", "resume_scheduler", "zk_reconnect", "zk_tick",
        "producer_handover", "make_leader", "speed",
    ]  # fmt: skip
    redrawn = ["net_request", "net_response", "net_connect", "zk_request", "zk_reply", "zk_watch"]
    assert set(redrawn) <= set(TABLE)
    asked = [(3, "broker-1", purpose) for purpose in (*kept, *redrawn)]
    once, twice = (with_other_latencies(choices.runs[0], asked, nth) for nth in (1, 2))
    assert {key[2] for key in once if once[key] != CHOSEN.get(key)} == set(redrawn)
    assert all(once[3, "broker-1", purpose] != twice[3, "broker-1", purpose] for purpose in redrawn)
    assert json.loads(json.dumps(choices.draws)) == {"0": 1, "3-4": 20}


def test_a_moment_is_a_number(tmp_path: Path) -> None:
    file = tmp_path / "choices.json"
    runs = [chosen_run(9, {(3, "", "soon"): 5})]
    write_choices(choices_of(read_recording(FOLDER), runs, {}), file)
    with pytest.raises(BadChoices, match="segment 3: 'soon' is not a moment"):
        read_choices(file)


@pytest.mark.parametrize("is_boot", [False, True], ids=["segment", "boot"])
def test_a_run_is_the_same_until_a_chosen_moment_and_is_replayed(
    real: Recording, is_boot: bool
) -> None:
    script = script_of(real)
    segment, step = next(
        (number, step)
        for number, step in enumerate(script.scenario.steps, 1)
        if step.action.name == "resume"
    )
    moment_us = step.at_us + 300
    if is_boot:
        # The boot is segment 0, before the cluster is up.
        segment, moment_us = 0, -2_000_000
    plain, _ = replay(script, chosen_run(9, {}))
    chosen = chosen_run(9, {(segment, "", str(moment_us)): 77})
    once, streams = replay(script, chosen)
    twice, _ = replay(script, chosen)
    assert once.events == twice.events
    assert once.events != plain.events

    def until(run: Recording) -> list[Fact]:
        return [fact for fact in run.events if fact["t"] * 1000 < moment_us - 1000]

    assert until(once) == until(plain)
    assert any(actor.endswith(f"@{moment_us}") for _, actor, _ in streams)
    assert set(with_other_latencies(chosen, streams, 1)) > set(chosen.by_stream)
