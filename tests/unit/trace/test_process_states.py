"""Traces of format 1 as they are read: process states from actions and boots, numbered anew."""

from __future__ import annotations

from emulator.trace import events as e
from emulator.trace.reader import with_process_states
from emulator.trace.values import Parameters
from tests.unit.scenario.story import Story


def states(story: Story) -> list[tuple[int, str]]:
    events = list(with_process_states(story.events))
    assert [event.seq for event in events] == list(range(len(events)))
    return [(one.broker, one.state) for one in events if isinstance(one, e.ProcessStateChanged)]


def boots(story: Story, broker: int) -> Story:
    return story.tell(e.BrokerStarting, broker, "2.6").tell(e.BrokerStarted, broker)


def action(story: Story, broker: int, do: str) -> Story:
    return story.tell(e.ActionApplied, broker, do, Parameters())


def test_a_pause_leads_back_to_what_was_before() -> None:
    story = Story().tell(e.BrokerStarting, 1, "2.6")
    action(action(story, 1, "pause"), 1, "resume").tell(e.BrokerStarted, 1)
    assert states(story) == [(1, "starting"), (1, "paused"), (1, "starting"), (1, "up")]


def test_who_is_dead_is_neither_paused_nor_stopped_and_dies_once() -> None:
    story = action(boots(Story(), 2), 2, "kill")
    action(action(story, 2, "pause"), 2, "resume").tell(e.BrokerExited, 2)
    assert states(story) == [(2, "starting"), (2, "up"), (2, "dead")]


def test_an_orderly_end_is_stopping_then_dead_and_a_halt_is_dead() -> None:
    story = action(boots(Story(), 2), 2, "terminate").tell(e.BrokerExited, 2)
    boots(story, 3).tell(e.BrokerHalted, 3, "disk")
    assert states(story)[2:4] == [(2, "stopping"), (2, "dead")]
    assert states(story)[-1] == (3, "dead")


def test_causes_keep_to_their_events() -> None:
    story = boots(Story(), 1).tell(e.BrokerExited, 1)
    last = story.events[-1]
    story.events.append(e.BrokerStarting(last.seq + 1, last.t, 1, "", last.seq, "2.6"))
    events = list(with_process_states(story.events))
    starting = [event for event in events if isinstance(event, e.BrokerStarting)][-1]
    assert isinstance(events[starting.cause], e.BrokerExited)
