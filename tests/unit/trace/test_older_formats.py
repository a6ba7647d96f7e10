"""Traces of older formats are still read; actions had other kinds up to format 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.trace import events as e
from emulator.trace.reader import read_events, read_header

FORMAT_2 = """\
{"trace":2,"scenario":"flapping","seed":7,"profile":"2.6","zookeeper":"simulated"}
{"kind":"stimulus","seq":0,"t":10,"broker":2,"thread":"","cause":-1,"do":"pause","parameters":{}}
{"kind":"process_state_changed","seq":1,"t":10,"broker":2,"thread":"","cause":0,"state":"paused"}
{"kind":"stimulus_returned","seq":2,"t":20,"broker":0,"thread":"","cause":0,"of":0,"result":"NONE"}
{"kind":"told_shrink_counted","seq":3,"t":30,"broker":1,"thread":"","cause":2,\
"partition":["orders",0],"isr":[1,3]}
"""
FORMAT_1 = """\
{"trace":1,"scenario":"flapping","seed":7,"profile":"2.6","zookeeper":"simulated"}
{"kind":"stimulus","seq":0,"t":10,"broker":2,"thread":"","cause":-1,"do":"pause","arguments":""}
{"kind":"stimulus_returned","seq":1,"t":20,"broker":0,"thread":"","cause":0,"of":0,"result":"NONE"}
{"kind":"told_shrink_counted","seq":2,"t":30,"broker":1,"thread":"","cause":1,\
"partition":["orders",0],"isr":[1,3]}
"""


@pytest.mark.parametrize(("text", "version"), [(FORMAT_2, 2), (FORMAT_1, 1)])
def test_a_stored_run_of_an_older_format_is_read_as_of_today(
    text: str, version: int, tmp_path: Path
) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(text)
    assert read_header(file).trace == version
    pause, paused, returned, counted = read_events(file)
    assert isinstance(pause, e.ActionApplied)
    assert pause.do == "pause"
    assert isinstance(paused, e.ProcessStateChanged)
    assert paused.state == "paused"
    assert isinstance(returned, e.ActionReturned)
    assert returned.of == pause.seq
    assert isinstance(counted, e.ControllerShrinkCounted)
    assert counted.isr == (1, 3)
    assert [event.seq for event in (pause, paused, returned, counted)] == [0, 1, 2, 3]
