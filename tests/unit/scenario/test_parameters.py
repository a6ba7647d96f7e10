"""Every action's parameters have their place in the vocabulary of the trace."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from emulator.scenario.actions.base import actions
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.life import Crash
from emulator.scenario.actions.pause import Pause
from emulator.trace.events import ActionApplied
from emulator.trace.reader import Header, TraceWriter, decode_event, read_events
from emulator.trace.values import Parameters

PRODUCE = Produce("orders", (0, 1), 20.0, acks="all", client={"retries": 0})


@pytest.mark.parametrize("name", actions())
def test_an_actions_fields_are_parameters_in_their_order(name: str) -> None:
    own = [field for field in actions()[name].__struct_fields__ if field != "broker"]
    assert own == [field for field in Parameters.__struct_fields__ if field in own]


def test_what_is_left_to_its_default_is_not_said() -> None:
    assert PRODUCE.parameters == Parameters(
        topic="orders", partitions=(0, 1), rate=20.0, acks="all", client={"retries": 0}
    )
    assert Crash(2).parameters == Pause(broker=1).parameters == Parameters()
    assert Crash(2, lose="disk").parameters.lose == "disk"


def test_a_trace_has_them_as_an_object_and_a_data_set_as_text(tmp_path: Path) -> None:
    event = ActionApplied(0, 5, 0, "", -1, "produce", PRODUCE.parameters)
    said = '{"topic":"orders","partitions":[0,1],"rate":20.0,"acks":"all","client":{"retries":0}}'
    with TraceWriter(tmp_path / "t", Header(2, "s", 1, "2.6", "simulated")) as write:
        write(event)
    assert f'"parameters":{said}' in (tmp_path / "t").read_text()
    assert list(read_events(tmp_path / "t")) == [event]
    assert event.parameters.text == said


def test_format_1_had_them_as_text() -> None:
    event = ActionApplied(0, 5, 0, "", -1, "produce", PRODUCE.parameters)
    old = msgspec.to_builtins(event) | {"kind": "stimulus", "arguments": event.parameters.text}
    del old["parameters"]
    assert decode_event(msgspec.json.encode(old)) == event
