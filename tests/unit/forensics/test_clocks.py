"""Clocks are found from causes alone, whatever the clocks are and however messages travel."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.forensics.causes import Causes, Pair
from emulator.forensics.clocks import SLACKS_MS, ZOOKEEPER, estimate

NAMES = ("broker-1", "broker-2", "broker-3", ZOOKEEPER)
AHEAD = st.fixed_dictionaries({name: st.integers(-100_000, 100_000) for name in NAMES[:3]})
ROUND_TRIPS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.integers(0, 10**9),
        st.integers(0, 5_000),
        st.integers(0, 5_000),
    ),
    min_size=1,
    max_size=40,
)


def pairs_of(ahead: dict[str, int], trips: list[tuple[str, str, int, int, int]]) -> list[Pair]:
    """Round trips of messages as seen by clocks that are ahead by this much."""
    clock = {**ahead, ZOOKEEPER: 0}
    pairs = []
    for a, b, sent, there, back in trips:
        pairs.append(Pair(a, sent + clock[a], b, sent + there + clock[b]))
        answered = sent + there
        pairs.append(Pair(b, answered + clock[b], a, answered + back + clock[a]))
    return pairs


@settings(deadline=None)
@given(AHEAD, ROUND_TRIPS)
def test_the_truth_lies_within_the_bounds(
    ahead: dict[str, int], trips: list[tuple[str, str, int, int, int]]
) -> None:
    found = estimate(pairs_of(ahead, trips), NAMES)
    assert (found.contradiction, found.slack_ms) == ("", SLACKS_MS[0])
    truth = {**ahead, ZOOKEEPER: 0}
    for one in found.ahead:
        real = truth[one.clock] - truth[found.reference]
        assert one.at_least is None or one.at_least <= real
        assert one.at_most is None or real <= one.at_most


@settings(deadline=None)
@given(AHEAD, ROUND_TRIPS)
def test_a_clock_is_found_within_the_quickest_round_trip(
    ahead: dict[str, int], trips: list[tuple[str, str, int, int, int]]
) -> None:
    """Between two clocks that talk to each other directly."""
    found = estimate(pairs_of(ahead, trips), NAMES)
    truth = {**ahead, ZOOKEEPER: 0}
    for one in found.ahead:
        direct = [t[3] + t[4] for t in trips if {t[0], t[1]} == {one.clock, found.reference}]
        if direct:
            real = truth[one.clock] - truth[found.reference]
            assert abs(one.ms - real) <= max(t[3] + t[4] for t in trips) + 2 * SLACKS_MS[0]
            assert one.at_most is not None
            assert one.at_least is not None
            assert one.at_most - one.at_least <= min(direct) + 2 * SLACKS_MS[0]
            if not one.at_least <= 0 <= one.at_most:  # it cannot be right: the middle is taken
                assert abs(one.ms - real) <= (one.at_most - one.at_least + 1) // 2


@settings(deadline=None)
@given(st.integers(-10_000, 10_000), st.integers(0, 1_000))
def test_with_one_bound_alone_the_quickest_message_took_no_time(ms: int, took: int) -> None:
    found = estimate([Pair(ZOOKEEPER, 0, "broker-1", ms + took)], ["broker-1", ZOOKEEPER])
    (one,) = found.ahead
    assert (one.ms, one.at_least) == (ms + took + SLACKS_MS[0], None)
    assert not one.is_bounded


def test_a_clock_that_nothing_ties_to_the_others_is_taken_as_it_is() -> None:
    (one,) = estimate([], ["broker-1", "broker-2"]).ahead
    assert (one.ms, one.at_least, one.at_most) == (0, None, None)


def test_a_clock_that_was_set_back_contradicts_itself() -> None:
    pairs = [
        Pair("broker-1", 0, "broker-2", 0),
        Pair("broker-2", 10_000, "broker-1", 0),
    ]
    found = estimate(pairs, ["broker-1", "broker-2"])
    assert "broker-1, broker-2" in found.contradiction
    assert found.correction_ms("broker-1") == 0


def test_clocks_that_drift_are_fitted_as_well_as_they_can_be() -> None:
    pairs = [Pair("broker-1", 0, "broker-2", 40), Pair("broker-2", 100, "broker-1", 45)]
    found = estimate(pairs, ["broker-1", "broker-2"])
    assert (found.contradiction, found.slack_ms) == ("", 10)


def test_messages_are_paired_one_to_one_and_not_where_one_is_missing() -> None:
    causes = Causes()
    for at_ms in (10, 20):
        causes.sent("lost", "broker-1", at_ms)
        causes.sent("kept", "broker-1", at_ms)
        causes.arrived("kept", "broker-2", at_ms + 3)
    causes.arrived("lost", "broker-2", 23)
    assert list(causes.pairs()) == [
        Pair("broker-1", 10, "broker-2", 13),
        Pair("broker-1", 20, "broker-2", 23),
    ]


def test_what_was_written_once_is_seen_first_by_each_clock_and_twice_by_none() -> None:
    causes = Causes()
    causes.written("v1", ZOOKEEPER, 10)
    causes.written("v0", ZOOKEEPER, 5)
    causes.written("v0", ZOOKEEPER, 90)  # the topic was made anew: which one was seen?
    for key, at_ms in (("v1", 15), ("v1", 12), ("v0", 95)):
        causes.seen(key, "broker-1", at_ms)
    assert list(causes.pairs()) == [Pair(ZOOKEEPER, 10, "broker-1", 12)]


def test_a_clock_that_is_not_asked_for_ties_others_to_each_other() -> None:
    """ZooKeeper's, of which brokers' logs tell."""
    trips = [("broker-1", ZOOKEEPER, 1000, 3, 4), ("broker-2", ZOOKEEPER, 2000, 2, 1)]
    found = estimate(pairs_of({"broker-1": 1700, "broker-2": 0}, trips), ["broker-1", "broker-2"])
    (other,) = found.ahead
    assert found.reference != ZOOKEEPER
    assert abs(abs(other.ms) - 1700) <= 10
    assert other.is_bounded
