"""Chance: streams that do not know of each other, seeds per segment, and choices over them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kernel.rng import Chance, Choice, Stream, mix

properties = settings(derandomize=True, deadline=None)
NAMES = st.tuples(st.sampled_from(["zk_reply", "net"]), st.sampled_from(["broker-1", "broker-2"]))


def draws(chance: Chance, purpose: str = "net", actor: str = "broker-1", n: int = 5) -> list[int]:
    stream = chance.stream(purpose, actor)
    return [stream.bits() for _ in range(n)]


@properties
@given(st.lists(NAMES, max_size=20), st.integers(0, 2**64 - 1))
def test_a_draw_does_not_depend_on_what_other_streams_drew(
    others: list[tuple[str, str]], seed: int
) -> None:
    alone, among_others = Chance(seed), Chance(seed)
    wanted = draws(alone, "mine", "broker-1", n=len(others) + 1)
    got = []
    for name in others:
        got.append(among_others.stream("mine", "broker-1").bits())
        among_others.stream(*name).bits()
    got.append(among_others.stream("mine", "broker-1").bits())
    assert got == wanted


def test_streams_differ_by_purpose_actor_segment_and_seed() -> None:
    chance, other = Chance(1), Chance(2)
    found = [
        draws(chance),
        draws(chance, actor="broker-2"),
        draws(chance, purpose="zk_reply"),
        draws(other),
    ]
    chance.next_segment()
    found.append(draws(chance))
    assert len({tuple(f) for f in found}) == 5


def test_purpose_and_actor_do_not_stand_for_each_other() -> None:
    assert draws(Chance(1), "a", "b") != draws(Chance(1), "b", "a")


def test_a_segment_begins_its_streams_anew_whatever_was_drawn_before_it() -> None:
    busy, idle = Chance(7), Chance(7)
    draws(busy, n=100)
    for chance in (busy, idle):
        chance.next_segment()
    assert draws(busy) == draws(idle)


def first_draws(choices: dict[Choice, int], actor: str, purpose: str) -> list[int]:
    return draws(Chance(7, choices), purpose, actor)


ONE, TWO = ("broker-1", "net"), ("broker-2", "net")


def test_a_choice_overrides_a_whole_segment() -> None:
    assert first_draws({(0, "", ""): 99}, *ONE) != first_draws({}, *ONE)
    assert first_draws({(0, "", ""): 99}, *TWO) != first_draws({}, *TWO)


def test_a_choice_overrides_one_actor_and_nobody_else() -> None:
    chosen: dict[Choice, int] = {(0, "broker-1", ""): 99}
    assert first_draws(chosen, *ONE) != first_draws({}, *ONE)
    assert first_draws(chosen, *TWO) == first_draws({}, *TWO)


def test_a_choice_overrides_one_stream_and_no_other() -> None:
    chosen: dict[Choice, int] = {(0, "broker-1", "net"): 99}
    stream = Stream(99)
    assert first_draws(chosen, *ONE) == [stream.bits() for _ in range(5)]
    assert first_draws(chosen, "broker-1", "zk") == first_draws({}, "broker-1", "zk")


def test_the_most_particular_choice_counts() -> None:
    both = Chance(7, {(0, "", ""): 1, (0, "broker-1", ""): 2, (0, "broker-1", "net"): 3})
    assert both.seed_of(0, "broker-1", "net") == 3
    assert both.seed_of(0, "broker-1", "zk") == actor_seed(2, "broker-1", "zk")
    assert both.seed_of(0, "broker-2", "zk") == actor_seed(1, "broker-2", "zk")


def actor_seed(base: int, actor: str, purpose: str) -> int:
    """A stream's seed under a chosen base seed."""
    return Chance(0, {(0, "", ""): base}).seed_of(0, actor, purpose)


def test_a_choice_for_one_segment_leaves_the_others_alone() -> None:
    plain, chosen = Chance(7), Chance(7, {(1, "", ""): 5})
    assert draws(plain) == draws(chosen)
    for chance in (plain, chosen):
        chance.next_segment()
    assert draws(plain) != draws(chosen)
    for chance in (plain, chosen):
        chance.next_segment()
    assert draws(plain) == draws(chosen)


def test_the_values_are_the_same_everywhere_and_for_ever() -> None:
    """SplitMix64's published first outputs for seed 1234567; and one stream of a run."""
    stream = Stream(1234567)
    assert [stream.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
    assert mix(0) == 0
    assert Chance(1).stream("net_request", "broker-1").bits() == 2935872513042812609


@properties
@given(st.integers(0, 2**64 - 1), st.integers(1, 1000), st.integers(-50, 50))
def test_draws_stay_in_their_range(seed: int, width: int, low: int) -> None:
    stream = Stream(seed)
    assert all(0 <= stream.below(width) < width for _ in range(20))
    assert all(low <= stream.between(low, low + width) <= low + width for _ in range(20))


def test_every_value_of_a_small_range_comes_about_as_often() -> None:
    stream = Stream(3)
    found = Counter(stream.between(1, 6) for _ in range(6000))
    assert sorted(found) == [1, 2, 3, 4, 5, 6]
    assert min(found.values()) > 900


@properties
@given(st.integers(0, 2**64 - 1), st.lists(st.integers(), max_size=20))
def test_shuffling_keeps_what_there_is_and_leaves_the_list_as_it_was(
    seed: int, items: list[int]
) -> None:
    before = list(items)
    shuffled = Stream(seed).shuffled(items)
    assert items == before
    assert sorted(shuffled) == sorted(items)


def test_shuffling_can_give_every_order() -> None:
    stream = Stream(5)
    assert len({tuple(stream.shuffled([1, 2, 3])) for _ in range(200)}) == 6


@pytest.mark.parametrize("seed", [0, -1, 2**64, 2**70 + 3])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    assert 0 <= Stream(seed).bits() < 2**64
    assert 0 <= Chance(seed).stream("a", "b").bits() < 2**64


def test_all_streams_of_a_segment_start_again_at_a_chosen_moment() -> None:
    moment: dict[Choice, int] = {(1, "", "9000"): 5}
    plain, chosen = Chance(7), Chance(7, moment)
    for chance in (plain, chosen):
        chance.next_segment()
    assert (plain.moments_us(), chosen.moments_us()) == ([], [9000])
    assert chosen.stream("net", "broker-1").bits() == plain.stream("net", "broker-1").bits()
    chosen.start_again_at(9000)
    again = chosen.stream("net", "broker-1").bits()
    assert again != plain.stream("net", "broker-1").bits()
    assert again == Stream(actor_seed(5, "broker-1", "net")).bits()
    chosen.next_segment()
    plain.next_segment()
    assert chosen.moments_us() == []
    assert chosen.stream("net", "broker-1").bits() == plain.stream("net", "broker-1").bits()


def test_a_stream_after_a_moment_has_a_choice_of_its_own() -> None:
    choices: dict[Choice, int] = {
        (0, "", "9000"): 5,
        (0, "broker-1", "net"): 3,
        (0, "broker-1@9000", "net"): 4,
    }
    chance = Chance(7, choices)
    assert chance.seed_of(0, "broker-1", "net") == 3
    chance.start_again_at(9000)
    assert chance.seed_of(0, "broker-1", "net") == 4
