"""The document of the vocabulary says what the code says, and every event is in the union."""

from pathlib import Path
from typing import get_args

from emulator.trace import events
from emulator.trace.event import Event
from emulator.trace.events import AnyEvent
from tools.documents.trace import markdown

DOCUMENT = Path(__file__).parents[3] / "docs" / "trace.md"


def test_the_document_is_made_from_the_events() -> None:
    said = DOCUMENT.read_text()
    assert said.rstrip() == markdown().rstrip(), "run: python -m tools.documents.trace"


def test_every_kind_of_event_is_in_the_union_that_readers_decode() -> None:
    written = {it for it in vars(events).values() if isinstance(it, type) and issubclass(it, Event)}
    assert written - {Event} == set(get_args(AnyEvent))


def test_every_event_begins_with_the_same_five_fields() -> None:
    for kind in get_args(AnyEvent):
        assert kind.__struct_fields__[:5] == ("seq", "t", "broker", "thread", "cause")
