"""The controller's decision on one proposal, from its cache alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.controller.alter_isr import validate
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.base import Guard
from zk.client.codec import LeaderAndIsr

OLD, STRICT = profiles()["2.7"].guards, profiles()["3.3"].guards
ISRS = st.lists(st.integers(1, 4), unique=True, min_size=1).map(tuple)
STATES = st.builds(LeaderAndIsr, st.integers(1, 2), st.integers(3, 5), ISRS, st.integers(4, 6))
LIVE = st.sets(st.integers(1, 4))


def same(a: LeaderAndIsr, b: LeaderAndIsr) -> bool:
    return (a.leader, a.leader_epoch, a.isr) == (b.leader, b.leader_epoch, b.isr)


@given(STATES, STATES, LIVE)
def test_up_to_3_2_only_an_old_epoch_is_refused_and_only_what_is_so_already_not_written(
    wanted: LeaderAndIsr, cached: LeaderAndIsr, live: set[int]
) -> None:
    decided = validate(wanted, cached, live, 0, OLD)
    if wanted.leader_epoch < cached.leader_epoch:
        assert decided is Errors.FENCED_LEADER_EPOCH
    elif same(wanted, cached):
        assert decided is cached
    else:
        assert decided is None


@given(STATES, STATES, LIVE, st.sampled_from([0, 2]))
def test_from_3_3_on_what_is_written_follows_from_the_cache_and_from_who_lives(
    wanted: LeaderAndIsr, cached: LeaderAndIsr, live: set[int], version: int
) -> None:
    decided = validate(wanted, cached, live, version, STRICT)
    ahead = wanted.zk_version > cached.zk_version or wanted.leader_epoch > cached.leader_epoch
    assert (decided is Errors.NOT_CONTROLLER) == ahead
    if decided is None:
        assert set(wanted.isr) <= live
        assert wanted.leader_epoch == cached.leader_epoch
        assert wanted.zk_version == cached.zk_version
    told = Errors.INELIGIBLE_REPLICA if version else Errors.OPERATION_NOT_ATTEMPTED
    other = Errors.OPERATION_NOT_ATTEMPTED if version else Errors.INELIGIBLE_REPLICA
    assert decided is not other
    if decided is told:
        assert not set(wanted.isr) <= live


@given(STATES, st.sampled_from([OLD, STRICT]))
def test_a_partition_without_an_entry_is_unknown(
    wanted: LeaderAndIsr, guards: frozenset[Guard]
) -> None:
    decided = validate(wanted, None, (), 0, guards)
    assert decided is Errors.UNKNOWN_TOPIC_OR_PARTITION


@given(STATES, LIVE, st.sampled_from([OLD, STRICT]))
def test_a_retry_of_what_was_written_is_a_success(
    wanted: LeaderAndIsr, live: set[int], guards: frozenset[Guard]
) -> None:
    """KAFKA-14144: the proposed state, with the resulting version."""
    written = LeaderAndIsr(wanted.leader, wanted.leader_epoch, wanted.isr, wanted.zk_version + 1)
    assert validate(wanted, written, live, 0, guards) is written
