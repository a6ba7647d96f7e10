"""The boot's phases, read off recordings: as far as they tell, and inside the declared ranges."""

from dataclasses import replace
from pathlib import Path

import pytest

from emulator.conformance.recording import Fact, Recording, read_recording
from emulator.kafka.profiles.base import Profile, profiles
from emulator.kernel.rng import Chance, Stream
from emulator.runs.play import latencies_to_registration
from emulator.search.guided.phases import Phase, Phases, boots_of, fitted, phases_of
from emulator.worlds.latency import TABLE, Latencies

RECORDINGS = Path(__file__).parents[3] / "recordings"
RANDOM_PAUSES = sorted((RECORDINGS / "repeats/kafka-2.6.3/random-pauses-6").iterdir())


def running(_broker: int) -> Profile:
    return profiles()["2.6"]


def drawn(choices: dict[tuple[int, str, str], int], actor: str, purpose: str) -> int:
    return Latencies(Chance(0, choices))(f"boot.{purpose}", actor)


@pytest.mark.parametrize("folder", RANDOM_PAUSES, ids=lambda folder: folder.name)
def test_both_tasks_of_a_boot_begin_together_within_what_is_declared(folder: Path) -> None:
    phases = boots_of(read_recording(folder), running)
    told = [p for p in phases if p.expiration_ms is not None and p.propagation_ms is not None]
    for phase in told:
        assert phase.expiration_ms is not None
        assert phase.propagation_ms is not None
        assert -5 <= phase.propagation_ms - phase.expiration_ms <= 25
    assert any(p.expiration_ms is not None or p.propagation_ms is not None for p in phases)


FITTED = range(1, 21, 4)
"""Seeds with all phases."""


def test_of_four_seeds_one_has_no_phase_one_all_of_them_and_two_half_of_them() -> None:
    boots = tuple(Phase(broker, -130, None) for broker in range(1, 6))
    phases = Phases(boots, 500, ticked_ms=40)

    def chosen(seed: int) -> set[str]:
        return {actor for _, actor, _ in fitted(phases, seed)}

    assert not any(chosen(seed) for seed in range(0, 40, 4))
    assert {len(chosen(seed)) for seed in FITTED} == {6}
    numbers = [len(chosen(seed)) for seed in range(80) if seed % 4 > 1]
    assert 2.4 < sum(numbers) / len(numbers) < 3.6
    assert {0, 1, 2, 3, 4, 5, 6} >= set(numbers) > {2, 3, 4}


def test_seeds_are_chosen_whose_draws_come_near() -> None:
    phase = Phase(2, expiration_ms=-130, propagation_ms=-120)
    for seed in FITTED:
        choices = fitted(Phases((phase,), 500, None), seed)
        assert {purpose for _, _, purpose in choices} <= set(TABLE)
        before = drawn(choices, "broker-2", "replica_manager_to_registration")
        begin_us = drawn(choices, "broker-2", "replica_manager_startup") - before
        assert -135_000 <= begin_us <= -129_000
        apart_us = drawn(choices, "broker-2", "propagation")
        assert -125_000 <= begin_us + apart_us <= -119_000


def test_what_lies_outside_the_declared_range_cannot_be_chosen() -> None:
    choices = fitted(Phases((Phase(2, -9_000, None),), 500, None), 1)
    longest = TABLE["boot.replica_manager_to_registration"].warm[-1][1]
    took = drawn(choices, "broker-2", "replica_manager_to_registration")
    assert 0.9 * longest < took <= longest


@pytest.mark.parametrize(("kafka", "threads"), [("0.10.2", "callbacks"), ("1.0", "queue")])
def test_up_to_1_0_the_controller_starts_before_the_registration_and_is_elected_meanwhile(
    kafka: str, threads: str
) -> None:
    late_registration = latencies_to_registration(profiles()[kafka], is_elected=True)[
        "replica_manager"
    ]
    phase = Phase(2, expiration_ms=-220, propagation_ms=None, to_registration=late_registration)
    choices = fitted(Phases((phase,), 500, None), FITTED[0])
    elected = drawn(choices, "broker-2", f"while_elected_{threads}")
    before = drawn(choices, "broker-2", f"replica_manager_to_late_registration_{threads}")
    startup = drawn(choices, "broker-2", "replica_manager_startup")
    assert -225_000 <= startup - before - elected <= -215_000


def test_a_recording_that_does_not_tell_leaves_the_choice_free() -> None:
    real = read_recording(RECORDINGS / "kafka-2.6.3" / "shrink-expand")
    silent = replace(real, events=[fact for fact in real.events if fact["kind"] == "stimulus"])
    assert [(p.expiration_ms, p.propagation_ms) for p in boots_of(silent, running)] == [
        (None, None)
    ] * 3
    assert fitted(phases_of(silent, running), 1) == {}


def fact(t: int, kind: str, **fields: object) -> Fact:
    return {"t": t, "kind": kind, **fields}


def shrink(t: int) -> Fact:
    return fact(t, "shrink", broker=1, topic="o", partition=0, from_isr=[1, 2], to_isr=[1])


def test_shrinks_after_a_resume_or_after_another_tell_nothing() -> None:
    registered = fact(-2000, "stimulus", do="registered", broker=1)
    resumed = fact(9000, "stimulus", do="resume", broker=1)
    events = [registered, shrink(5900), shrink(5990), resumed, shrink(9020), shrink(15_903)]
    settings = {"kafka": "2.6.3", "replica.lag.time.max.ms": 2000}
    (phase,) = boots_of(Recording(settings, events), running)
    assert phase.expiration_ms == -100


def test_the_ticks_on_which_sessions_expired_are_chosen() -> None:
    real = read_recording(RECORDINGS / "kafka-2.6.3" / "min-isr")
    phases = phases_of(real, running)
    assert phases.ticked_ms is not None
    for seed in FITTED:
        chosen = fitted(phases, seed)[0, "zookeeper", "zk_tick"]
        late_ms = (phases.ticked_ms + Stream(chosen).below(500)) % 500
        assert late_ms <= 6 or late_ms >= 498


def notification(t: int, number: int) -> Fact:
    path = f"/isr_change_notification/isr_change_{number:010}"
    data = '{"version":1,"partitions":[]}'
    return fact(t, "zookeeper", broker=1, op="create", path=path, data=data)


def recording(*events: Fact) -> Recording:
    settings = {"kafka": "2.6.3", "replica.lag.time.max.ms": 2000}
    return Recording(settings, sorted(events, key=lambda one: one["t"]))


def test_where_both_tasks_contradict_each_other_the_later_one_was_late() -> None:
    registered = fact(-2000, "stimulus", do="registered", broker=1)
    (phase,) = boots_of(recording(registered, shrink(5900), notification(10_440, 0)), running)
    assert (phase.expiration_ms, phase.propagation_ms) == (-100, None)
    (phase,) = boots_of(recording(registered, shrink(5950), notification(10_400, 0)), running)
    assert (phase.expiration_ms, phase.propagation_ms) == (None, -100)


def test_each_process_of_a_broker_has_its_own_phases_and_its_own_segment() -> None:
    events = [
        fact(-3500, "stimulus", do="start", broker=1),
        fact(-2000, "stimulus", do="registered", broker=1),
        shrink(5900),
        fact(20_000, "stimulus", do="kill", broker=1),
        fact(30_000, "stimulus", do="start", broker=1),
        fact(31_500, "stimulus", do="registered", broker=1),
        shrink(36_440),
    ]
    first, second = boots_of(recording(*events), running)
    assert (first.expiration_ms, second.expiration_ms) == (-100, -60)
    phases = phases_of(recording(*events), running, [20_000, 30_000, 31_470])
    assert {segment for segment, _, _ in fitted(phases, 1)} == {0}
    assert fitted(phases, 1, range(1, 2)) == {}
    in_restart = fitted(phases, 1, range(2, 3))
    # The boot is planned at the start; its tasks are scheduled 60 ms before the registration.
    assert {segment for segment, _, purpose in in_restart if "to_reg" in purpose} == {2}
    assert {segment for segment, _, purpose in in_restart if "startup" in purpose} == {2}
    later = phases_of(recording(*events), running, [20_000, 30_000, 31_430])
    late = fitted(later, 1, range(2, 3))
    assert {segment for segment, _, purpose in late if "startup" in purpose} == {3}
