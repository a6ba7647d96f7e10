"""Every kind of event has words."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
import pytest

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import (
    EpochRun,
    Lagging,
    LoggedOp,
    Offset,
    Parameters,
    PartitionState,
    TopicPartition,
    WireOp,
)
from emulator.view import wording
from emulator.view.event_text import Level, fields_of, partitions_of, scene
from emulator.view.wording import describe_event, versions

P0 = TopicPartition("orders", 0)
SAMPLES: dict[Any, Any] = {
    int: 5,
    str: "some",
    bool: True,
    TopicPartition: P0,
    PartitionState: PartitionState(P0, 1, 1, 0, (1, 2), 3, (1, 2)),
    Lagging: Lagging(2, 3, 2500),
    EpochRun: EpochRun(2, 4),
    Offset: Offset(P0, 4),
    LoggedOp: LoggedOp("create", "/brokers/topics/orders/partitions/0/state", "{}"),
    WireOp: WireOp("create", "/x"),
    Parameters: Parameters(topic="orders"),
}
KINDS: tuple[type[Any], ...] = typing.get_args(AnyEvent)


def sample(kind: type[Any]) -> Any:
    """An event of this kind with some value in every field."""
    values = {f.name: value(f.type) for f in msgspec.structs.fields(kind)}
    return kind(**{**values, "seq": 0, "t": 0, "broker": 1, "cause": -1})


def value(kind: Any) -> Any:
    if typing.get_origin(kind) is tuple:
        return (value(typing.get_args(kind)[0]),)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return value(typing.get_args(kind)[0])
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)[0]
    return SAMPLES[kind]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_can_be_told(kind: type[Any]) -> None:
    event = sample(kind)
    told = describe_event(event, scene(Timeline([event])))
    assert told.headline
    assert "\n" not in told.headline
    assert isinstance(partitions_of(event), tuple)


def test_a_kind_without_words_of_its_own_is_told_by_its_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wording, "DESCRIBERS", {})
    event = e.HwAdvanced(0, 0, 1, "", -1, P0, "leader", 60, 61)
    told = describe_event(event, scene(Timeline([event])))
    assert told.headline == "hw advanced"
    assert told.numbers == "partition orders-0, role leader, hw 60, leo 61"


def test_what_failed_is_never_mere_traffic() -> None:
    for kind in KINDS:
        if kind.__name__.endswith(("Rejected", "Refused", "Ignored", "Malformed")):
            event = sample(kind)
            assert describe_event(event, scene(Timeline([event]))).level is Level.STORY


def test_structures_are_told_without_what_is_empty_in_them() -> None:
    state = PartitionState(P0, 1, 1, 0, (1, 2), 0, (1, 2))
    event = e.LeaderAndIsr(0, 0, 1, "", -1, 3, 1, state)
    assert fields_of(event) == (
        "sender 3, sender epoch 1, state partition orders-0 controller epoch 1 leader 1"
        " leader epoch 0 isr [1,2] zk version 0 replicas [1,2]"
    )


def test_versions_in_a_row_are_a_range() -> None:
    assert [versions(v) for v in ((1,), (1, 2), (1, 2, 3))] == ["v1", "v1 and v2", "v1–v3"]
