"""Versions as data: each follows from the one before it, and guards can be switched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.profiles.base import CannotPropagate, profiles
from emulator.kafka.profiles.differences import differences
from emulator.kafka.profiles.guards.base import Guard, guards, number
from emulator.kafka.profiles.guards.isr import LAG_BY_TIME_ONLY, STAY_AT_LOG_END
from emulator.worlds.wire.api import supported_versions, version_sent

names = st.sampled_from(list(profiles()))


@given(names)
def test_every_version_starts_with_its_own_defaults(name: str) -> None:
    profile = profiles()[name]
    config = KafkaConfig.of(profile.values, {})
    assert config.zookeeper_connection_timeout_ms == config.zookeeper_session_timeout_ms
    assert profile.release.startswith(name) and "spec §" in profile.citation
    assert not set(profile.fixed) & set(profile.defaults)


def test_versions_are_listed_oldest_first() -> None:
    releases = [number(profile.release) for profile in profiles().values()]
    assert releases == sorted(releases) and len(set(releases)) == len(releases)
    assert number("0.10.2.2") > number("0.9") > number("0.8.2.2")


def test_a_version_has_every_guard_that_is_not_younger_than_it() -> None:
    for profile in profiles().values():
        for guard in guards().values():
            young = number(guard.since) > number(profile.release)
            unneeded = guard.unneeded_before and number(profile.release) < number(
                guard.unneeded_before
            )
            assert (guard in profile.guards) is (not young or bool(unneeded)), (profile, guard)


def test_a_guard_says_what_it_does_and_where_that_is_read() -> None:
    for guard in guards().values():
        assert guard.kafka.startswith(("KAFKA-", "KIP-"))
        assert any(source in guard.citation for source in ("spec §", "hazards B", ".scala@"))
        assert guard.does.endswith(".")
        assert "Without it" in guard.does, guard


def test_guards_can_be_taken_out_and_put_in() -> None:
    whole = profiles()["2.6"]
    less = whole.altered({STAY_AT_LOG_END.name: False})
    assert whole.guards - less.guards == {STAY_AT_LOG_END}
    assert less.altered({STAY_AT_LOG_END.name: True}).guards == whole.guards
    assert STAY_AT_LOG_END in profiles()["0.9.0"].altered({STAY_AT_LOG_END.name: True}).guards


def test_a_guard_that_is_taken_out_brings_back_the_setting_that_it_removed() -> None:
    assert "replica.lag.max.messages" not in profiles()["2.6"].defaults
    old = profiles()["2.6"].altered({LAG_BY_TIME_ONLY.name: False})
    assert old.defaults["replica.lag.max.messages"] == "4000"


def test_a_version_refuses_a_propagation_that_it_does_not_have() -> None:
    assert profiles()["2.6"].altered({}, "zk").propagation == "zk"
    with pytest.raises(CannotPropagate, match=r"Kafka 2\.6 has no propagation rpc, only zk"):
        profiles()["2.6"].altered({}, "rpc")


@given(names, names)
def test_what_differs_one_way_differs_the_other_way(a: str, b: str) -> None:
    there = differences(profiles()[a], profiles()[b])
    back = differences(profiles()[b], profiles()[a])
    assert [(one.name, one.a, one.b) for one in there] == [(o.name, o.b, o.a) for o in back]
    assert bool(there) is (a != b)


def test_a_guard_mends_nothing_before_there_was_something_to_mend() -> None:
    guard = Guard("g", "KAFKA-1", "2.6", "x", "y", unneeded_before="2.4")
    has = {release: guard.is_in(release) for release in ("2.3.1", "2.4", "2.5.1", "2.6")}
    assert has == {"2.3.1": True, "2.4": False, "2.5.1": False, "2.6": True}


@pytest.mark.parametrize(("propagation", "version"), [("rpc", 12), ("zk", 11)])
def test_who_writes_isrs_itself_fetches_as_2_6_does(propagation: str, version: int) -> None:
    """An inter.broker.protocol.version of 2.6: its leaders may not know anything newer yet."""
    for name, newest in (("2.7", 12), ("2.8", 12), ("3.3", 13)):
        running = profiles()[name].altered({}, propagation)
        assert version_sent(running, "Fetch", newest) == version
        assert version_sent(running.altered({}, "rpc"), "Fetch", 12) == 12, "and back"
        assert supported_versions(running)["Fetch"][1] == newest, (
            "it answers newer ones all the same"
        )
