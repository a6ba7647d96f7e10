"""Kafka's settings: names, types, and what Kafka refuses to start with."""

from __future__ import annotations

import msgspec
import pytest

from emulator.kafka.model.config import DERIVED, BadSetting, KafkaConfig, property_names
from emulator.kafka.profiles.base import profiles

DEFAULTS = profiles()["2.6"].values


FIELDS = {field.name: field for field in msgspec.structs.fields(KafkaConfig)}


def config(**settings: str) -> KafkaConfig:
    return KafkaConfig.of(DEFAULTS, {k.replace("_", "."): v for k, v in settings.items()})


def test_settings_have_kafkas_names_and_defaults() -> None:
    plain = config()
    assert (plain.replica_lag_time_max_ms, plain.num_io_threads) == (30_000, 8)
    assert property_names()["replica.lag.time.max.ms"] == "replica_lag_time_max_ms"
    of_any = {key for profile in profiles().values() for key in profile.values}
    in_all = {name.replace("_", ".") for name, field in FIELDS.items() if not field.required}
    assert of_any | DERIVED | in_all == set(property_names())


def test_what_is_set_wins_over_the_default_and_white_space_does_not_matter() -> None:
    assert config(replica_lag_time_max_ms=" 2000 ").replica_lag_time_max_ms == 2000
    assert config(delete_topic_enable="False").delete_topic_enable is False


def test_the_connection_time_out_is_the_sessions_unless_it_is_set() -> None:
    assert config(zookeeper_session_timeout_ms="6000").zookeeper_connection_timeout_ms == 6000
    both = config(zookeeper_session_timeout_ms="6000", zookeeper_connection_timeout_ms="900")
    assert both.zookeeper_connection_timeout_ms == 900


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"replica.lag.time.max": "1"}, "unknown setting replica.lag.time.max"),
        ({"num_io_threads": "1"}, "unknown setting num_io_threads"),
        ({"num.io.threads": "many"}, "num.io.threads: 'many' is not a whole number"),
        ({"num.io.threads": "1.5"}, "num.io.threads: '1.5' is not a whole number"),
        ({"num.io.threads": ""}, "num.io.threads: '' is not a whole number"),
        ({"delete.topic.enable": "1"}, "delete.topic.enable: '1' is neither true nor false"),
        ({"num.io.threads": "0"}, "num.io.threads must be at least 1"),
        ({"num.network.threads": "-1"}, "num.network.threads must be at least 1"),
        ({"num.replica.fetchers": "0"}, "num.replica.fetchers must be at least 1"),
        (
            {"replica.fetch.wait.max.ms": "30001"},
            "replica.fetch.wait.max.ms must not be above replica.lag.time.max.ms",
        ),
        (
            {"replica.fetch.wait.max.ms": "20", "replica.socket.timeout.ms": "19"},
            "replica.fetch.wait.max.ms must not be above replica.socket.timeout.ms",
        ),
    ],
)
def test_a_mistake_is_named_with_its_key(settings: dict[str, str], message: str) -> None:
    with pytest.raises(BadSetting) as error:
        KafkaConfig.of(DEFAULTS, settings)
    assert str(error.value) == message


def test_a_wait_as_long_as_the_lag_is_allowed() -> None:
    assert config(replica_fetch_wait_max_ms="30000").replica_fetch_wait_max_ms == 30_000
