"""A new topic's name and settings, compared with the results of 2.6.3's own Topic and LogConfig."""

from __future__ import annotations

import string
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.broker.topic_rules import (
    BadValue,
    can_collide,
    check_collisions,
    check_topic_name,
    check_topic_settings,
)
from emulator.kafka.model.config import TOPIC_PROPERTIES
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.model.topic_names import NAME_LENGTH_MAX

LEGAL = string.ascii_letters + string.digits + "._-"


@given(st.text(LEGAL, min_size=1, max_size=NAME_LENGTH_MAX).filter(lambda t: t not in (".", "..")))
def test_names_of_legal_characters_are_taken(topic: str) -> None:
    check_topic_name(topic)


@given(st.text(max_size=5), st.characters(exclude_characters=LEGAL), st.text(LEGAL, max_size=5))
def test_any_other_character_is_refused(before: str, other: str, after: str) -> None:
    with pytest.raises(KafkaError) as refused:
        check_topic_name(f"{before}{other}{after}")
    assert refused.value.error is Errors.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("", "it can't be empty"),
        (".", 'Topic name cannot be "." or ".."'),
        ("..", 'Topic name cannot be "." or ".."'),
        ("a b", "contains a character other than ASCII alphanumerics, '.', '_' and '-'"),
        ("x" * 250, "it can't be longer than 249 characters"),
    ],
)
def test_kafkas_words(topic: str, why: str) -> None:
    with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION") as refused:
        check_topic_name(topic)
    assert why in refused.value.message


@given(st.text("ab._", min_size=1, max_size=6), st.text("ab._", min_size=1, max_size=6))
def test_names_collide_where_only_dots_and_underscores_differ(one: str, other: str) -> None:
    alike = one != other and one.replace("_", ".") == other.replace("_", ".")
    refused = pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION")
    with refused if alike else nullcontext():
        check_collisions(one, [other])
    assert can_collide(one) or not alike


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("min.insync.replicas", "abc", "Not a number of type INT"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("min.insync.replicas", "2147483648", "Not a number of type INT"),
        ("cleanup.policy", "x", "String must be one of: compact, delete"),
        ("unclean.leader.election.enable", "maybe", "Expected value to be either true or false"),
        ("max.message.bytes", "-1", "Value must be at least 0"),
        ("segment.bytes", "1", "Value must be at least 14"),
        ("compression.type", "zz", "uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("leader.replication.throttled.replicas", "x", "must be '*' or a list of"),
        ("min.cleanable.dirty.ratio", "2", "Value must be between 0 and 1"),
        ("retention.ms", "-2", "Value must be at least -1"),
    ],
)
def test_values_that_kafka_refuses(name: str, value: str, why: str) -> None:
    with pytest.raises(BadValue) as refused:
        check_topic_settings({name: value})
    assert refused.value.error is Errors.INVALID_CONFIG
    assert f"Invalid value {value} for configuration {name}: " in refused.value.message
    assert why in refused.value.message


def test_values_that_kafka_takes() -> None:
    check_topic_settings(
        {
            "min.insync.replicas": "2",
            "flush.messages": "0",
            "cleanup.policy": "compact,delete",
            "unclean.leader.election.enable": "TRUE",
            "leader.replication.throttled.replicas": "0:1,1:2",
            "follower.replication.throttled.replicas": "*",
            "retention.ms": "-1",
            "min.cleanable.dirty.ratio": "0.5",
        }
    )


def test_a_name_that_is_none_comes_before_a_value_that_is_wrong() -> None:
    with pytest.raises(KafkaError, match="Unknown topic config name: foo"):
        check_topic_settings({"min.insync.replicas": "0", "foo": "bar"})


def test_what_the_emulator_obeys_kafka_knows() -> None:
    for name in TOPIC_PROPERTIES:
        with pytest.raises(BadValue):
            check_topic_settings({name: "?"})
