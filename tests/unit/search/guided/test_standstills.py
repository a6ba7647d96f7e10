"""A driver's standstill: read off its producers' results, and met at the same action in plays."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import Fact, ProduceResult, Recording, read_recording
from emulator.kernel.rng import Chance
from emulator.search.guided.standstills import Standstill, fitted_standstills, standstills_of
from emulator.worlds.latency import Latencies

RECORDINGS = Path(__file__).parents[3] / "recordings"
EVERYTHING = range(1, 21, 4)
"""Seeds that fit all that is seen."""


def stimulus(t: int, do: str, **parameters: object) -> Fact:
    return {"kind": "stimulus", "t": t, "do": do, **parameters}


def standstills(
    *actions: Fact, missing_ms: tuple[int, int], but: tuple[int, ...] = ()
) -> list[tuple[str, int]]:
    """Of a producer with a round every 50 ms, but in this interval only the late ones in `but`."""
    facts = [
        stimulus(0, "up", controller=3),
        stimulus(100, "create_topic", topic="orders", assignment=[[1, 2, 3]], returned=200),
        stimulus(1000, "produce", topic="orders", partitions=[0], rate=20, acks="1"),
        *actions,
    ]
    first, last = missing_ms
    rounds = sorted([*(t for t in range(1050, 9000, 50) if not first < t < last), *but])
    settings = {"kind": "settings", "kafka": "2.6.3"}
    results = [ProduceResult(t, "orders", "1", 0, "ok") for t in rounds]
    real = Recording(settings, facts, results=results)
    steps = script_of(real).scenario.steps
    return [(one.action, one.busy_us) for one in standstills_of(real, steps)]


PAUSE = stimulus(3020, "pause", broker=2)


def test_rounds_that_are_missing_around_a_first_action_are_a_standstill() -> None:
    assert standstills(PAUSE, missing_ms=(2900, 3150)) == [("pause", 112_500)]


def test_a_late_round_is_part_of_it_on_both_sides_of_the_action() -> None:
    """As in random-4 (kill) and random-7, run 1 (pause): one of the two gaps tells half of it."""
    assert standstills(PAUSE, missing_ms=(2900, 3150), but=(2975,)) == [("pause", 112_500)]
    assert standstills(PAUSE, missing_ms=(2900, 3150), but=(3070,)) == [("pause", 112_500)]


def test_rounds_on_time_are_none() -> None:
    assert standstills(PAUSE, missing_ms=(3000, 3050)) == []


def test_a_gap_that_is_longer_than_any_standstill_has_another_cause() -> None:
    assert standstills(PAUSE, missing_ms=(2900, 3900)) == []


def test_a_stall_beside_it_makes_it_unknown() -> None:
    assert standstills(PAUSE, missing_ms=(2900, 4500), but=(3100,)) == []


def test_a_producer_whose_records_are_not_acknowledged_shows_none() -> None:
    assert standstills(PAUSE, missing_ms=(2900, 4500)) == []


def test_a_gap_elsewhere_is_none() -> None:
    assert standstills(PAUSE, missing_ms=(4000, 4250)) == []


def test_only_the_first_action_of_its_kind_occupies_the_machine() -> None:
    before = stimulus(1500, "pause", broker=3)
    assert standstills(before, PAUSE, missing_ms=(2900, 3150)) == []


def test_a_request_to_the_cluster_occupies_no_machine() -> None:
    request = stimulus(
        3020, "reassign", topic="orders", partition=0, replicas=[2, 1, 3], returned=3040
    )
    assert standstills(request, missing_ms=(2900, 3150)) == []


def test_seeds_are_chosen_whose_draws_come_near() -> None:
    for seed in EVERYTHING:
        choices = fitted_standstills([Standstill(4, "pause", 110_000)], seed, range(3, 5))
        chance = Chance(0, choices)
        chance.segment = 4
        assert 108_000 <= Latencies(chance)("stimulus_busy", "pause") <= 112_000


def test_nothing_is_chosen_for_other_segments_and_by_one_seed_in_four() -> None:
    standstill = Standstill(4, "pause", 110_000)
    assert fitted_standstills([standstill], 1, range(4)) == {}
    assert fitted_standstills([standstill], 4, range(9)) == {}


def test_a_play_with_one_reports_no_result_for_a_while() -> None:
    """It delays each record by a part of the time, so its gap is a little shorter."""
    script = script_of(read_recording(RECORDINGS / "repeats/kafka-2.6.3/random-pauses-6/1"))
    steps = script.scenario.steps
    segment = next(n for n, step in enumerate(steps) if step.action.name == "pause")
    standstill, at_ms = Standstill(segment, "pause", 87_500), steps[segment].at_us / 1000

    def gap_ms(seed: int) -> float:
        choices = fitted_standstills([standstill], seed, range(9))
        rounds = sorted({result.t for result in simulate(script, 1, choices).results})
        return min(t for t in rounds if t > at_ms) - max(t for t in rounds if t <= at_ms)

    assert median(gap_ms(seed) for seed in EVERYTHING) > 1.5 * gap_ms(seed=0)
