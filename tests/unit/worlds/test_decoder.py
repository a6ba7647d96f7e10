"""The decoder is strict: bytes are a message that says the same when it is written again, or they
are refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from emulator.kafka.profiles.base import profiles
from emulator.worlds.wire import frames
from emulator.worlds.wire.api import apis, supported_versions
from emulator.worlds.wire.decoder import ENTRIES, ENUMS, MOST_ENTRIES, read
from emulator.worlds.wire.entities import (
    Entity,
    Field,
    Schema,
    fields_of,
    request_schema,
    response_schema,
    write,
)
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import UnknownApiVersionsVersion, arrived
from tests.unit.worlds.test_wire import FRAMES, STRIKES, garbled

KNOWS = supported_versions(profiles()["2.7"])
REQUESTS = [
    request_schema(api.key, version)
    for api in apis().values()
    if api.name in KNOWS
    for version in range(KNOWS[api.name][0], KNOWS[api.name][1] + 1)
]
RESPONSES = [
    response_schema(api.key, version)
    for api in apis().values()
    if api.name in KNOWS
    for version in range(KNOWS[api.name][0], KNOWS[api.name][1] + 1)
]
_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
EXACT = dt.timedelta(milliseconds=1 << 53)
"""kio writes a duration through a float."""
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


def _value(field: Field) -> st.SearchStrategy[Any]:
    if field.schema is not None:
        return entities(field.schema)
    if field.name in ENUMS:
        return st.sampled_from(sorted(ENUMS[field.name]))
    match field.kafka_type:
        case "int8" | "int16" | "int32" | "int64" as kind:
            return st.integers(-(1 << _BITS[kind]), (1 << _BITS[kind]) - 1)
        case "uint16" | "uint32" as kind:
            return st.integers(0, (1 << int(kind[4:])) - 1)
        case "bool":
            return st.booleans()
        case "string":
            return _TEXT
        case "bytes" | "records":
            return st.binary(max_size=6)
        case "uuid":
            return st.one_of(st.none(), st.integers(1, (1 << 128) - 1).map(lambda n: UUID(int=n)))
        case "error_code":
            return st.sampled_from(ErrorCode)
        case "timedelta_i32" | "timedelta_i64":
            ms = st.integers(-(1 << 31), (1 << 31) - 1)
            return ms.map(lambda n: dt.timedelta(milliseconds=n))
        case "datetime_i64":
            seconds = st.integers(86_400, 4_000_000_000)
            return seconds.map(lambda s: dt.datetime.fromtimestamp(s, dt.UTC))
    raise AssertionError(field.kafka_type)


def entities(schema: Schema) -> st.SearchStrategy[Any]:
    """Any message of a schema."""

    def of(field: Field) -> st.SearchStrategy[Any]:
        values = _value(field)
        if field.many:
            values = st.lists(values, max_size=3).map(tuple)
        # A tagged field that is null is left out.
        nullable = field.nullable and field.tag is None and field.kafka_type != "uuid"
        return st.one_of(st.none(), values) if nullable else values

    return st.builds(schema, **{field.name: of(field) for field in fields_of(schema)})


def encoded(entity: Entity) -> bytes:
    out = io.BytesIO()
    write(out, entity)
    return out.getvalue()


@pytest.mark.slow
@settings(deadline=None, max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_written_is_read_as_it_was_in_every_api_and_version(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(REQUESTS + RESPONSES))
    entity = data.draw(entities(schema))
    written = encoded(entity)
    assert read(schema, written, 0) == (entity, len(written))


@pytest.mark.slow
@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_message_that_is_cut_off_anywhere_is_refused(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(REQUESTS))
    written = encoded(data.draw(entities(schema)))
    for end in range(len(written)):
        with pytest.raises(Malformed):
            read(schema, written[:end], 0)


@settings(deadline=None, max_examples=600)
@given(st.sampled_from(FRAMES), STRIKES)
def test_a_request_with_other_bytes_in_it_says_the_same_when_written_again_or_is_refused(
    frame: tuple[bytes, str], strikes: list[tuple[int, bytes | None]]
) -> None:
    data, profile = frame
    _same_or_refused(garbled(data, strikes), profile)


@pytest.mark.slow
@settings(deadline=None, max_examples=600)
@given(
    st.sampled_from([(api.key, v) for api in apis().values() for v in range(13)]),
    st.binary(max_size=200),
)
def test_random_bytes_say_the_same_when_written_again_or_are_refused(
    api: tuple[int, int], body: bytes
) -> None:
    key, version = api
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1\0\1c"
    _same_or_refused(head + body, "2.7")


def _same_or_refused(data: bytes, profile: str) -> None:
    # An earlier example may differ in the broker epoch only: its entity would be returned.
    frames._last_read.clear()
    try:
        received = arrived(data, supported_versions(profiles()[profile]))
    except (Malformed, UnknownApiVersionsVersion):
        return
    fields = [getattr(received.entity, one.name) for one in dataclasses.fields(received.entity)]
    if any(isinstance(one, dt.timedelta) and abs(one) > EXACT for one in fields):
        return
    written = encoded(received.entity)
    schema: Any = type(received.entity)
    assert read(schema, written, 0) == (received.entity, len(written))
    if not schema.__flexible__:  # there an unknown tagged field is skipped
        assert data.endswith(written)


@pytest.mark.parametrize("frame", FRAMES[:: len(FRAMES) // 40])
def test_bytes_behind_the_end_of_a_request_are_refused(frame: tuple[bytes, str]) -> None:
    data, profile = frame
    for rest in (b"\1", b"\0\0\0\0"):
        with pytest.raises(Malformed, match=f"{len(rest)} bytes behind its end"):
            arrived(data + rest, supported_versions(profiles()[profile]))


def test_a_forged_stop_replica_with_a_negative_number_of_partitions_is_refused() -> None:
    """With this epoch it would fence the controller of the cluster for good."""
    forged = "0005 0000 00000001 0001 63" + "00000001 40000000 00 ffffffb3"
    with pytest.raises(Malformed, match="an array with length -77 at byte 20"):
        arrived(bytes.fromhex(forged.replace(" ", "")), KNOWS)


@pytest.mark.parametrize(
    ("request_hex", "why"),
    [
        ("0003 0001 00000001 0001 63 ffffffff", None),
        ("0003 0001 00000001 0001 63 fffffffe", "an array with length -2"),
        ("0003 0001 00000001 0001 63 00000001 ffff", "a string with length -1"),
        ("0003 0001 00000001 0001 63 00000001 0001 ff", "is not UTF-8"),
        ("0003 0001 00000001 0001 63 00000001 0002 6100", "has a NUL"),
        ("0003 0001 00000001 0001 63 00000001 0005 61", "a string of 5 bytes at byte 17, 1 are"),
        ("0003 0001 00000001 fffe", "a string with length -2"),
        ("0003 0004 00000001 0001 63 00000000 02", "a truth value of 2 at byte 15"),
        ("0003 0009 00000001 0001 63 00 00 00 00 00 02 05 00 05 00", "tagged field 5 after 5"),
        ("0003 0009 00000001 0001 63 00 00 00 00 00 01 05 07 61", "tagged field 5 of 7 bytes"),
        ("0003 0009 00000001 0001 63 00 ff ff ff ff ff", "more than 31 bits"),
        ("0002 0002 00000001 0001 63 ffffffff 02 00000000", "isolation_level 2: one of"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(request_hex: str, why: str | None) -> None:
    data = bytes.fromhex(request_hex.replace(" ", ""))
    if why is None:
        arrived(data, KNOWS)
        return
    with pytest.raises(Malformed, match=why):
        arrived(data, KNOWS)


def test_a_request_of_2_mb_costs_its_reader_no_time() -> None:
    """500,000 topics of two letters. Their entities would take more than 100 MB and a second."""
    head = bytes.fromhex("0003 0001 00000001 0001 63".replace(" ", ""))
    topics = (500_000).to_bytes(4, "big") + b"\0\2ab" * 500_000
    began = time.process_time()
    with pytest.raises(Malformed, match=f"more than {ENTRIES} entries"):
        arrived(head + topics, KNOWS)
    assert time.process_time() - began < 0.1


def test_the_entries_of_all_arrays_count_together() -> None:
    """UpdateMetadata: partitions, and replicas in each."""
    schema = request_schema(6, 5)
    kinds: dict[str, Any] = {field.name: field.schema for field in fields_of(schema)}
    topic = kinds["topic_states"]
    states: Any = next(f.schema for f in fields_of(topic) if f.name == "partition_states")
    plain = {
        field.name: () if field.many else 0
        for field in fields_of(states)
        if field.name != "replicas"
    }
    entity = schema(
        controller_id=1,
        controller_epoch=1,
        broker_epoch=1,
        live_brokers=(),
        topic_states=(
            topic(
                topic_name="t",
                partition_states=tuple(
                    states(**plain, replicas=(1,) * 499) for _ in range(MOST_ENTRIES // 500)
                ),
            ),
        ),
    )
    with pytest.raises(Malformed, match=f"more than {MOST_ENTRIES} entries"):
        read(schema, encoded(entity), 0)
    smaller: Any = dataclasses.replace(entity.topic_states[0], partition_states=())  # type: ignore[type-var]
    entity = dataclasses.replace(entity, topic_states=(smaller,))  # type: ignore[type-var]
    assert read(schema, encoded(entity), 0)[0] == entity


def test_a_time_before_1970_is_refused() -> None:
    """In a Produce response, input of a fuzzer: it ended the broker that had sent the request."""
    answer = bytes.fromhex(
        "00000001 00000001 0006 6f7264657273 00000001 00000000 0000 0000000000000013"
        "ffffffffffffffb3 ffffffffffffffff 00000000"
    )
    with pytest.raises(Malformed, match="a time of -77 ms"):
        read(response_schema(0, 5), answer, 4)
