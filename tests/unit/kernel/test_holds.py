"""Holds: one thing stops, everything else continues; what is behind it follows in order."""

from __future__ import annotations

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kernel.holds import At, HoldPoint, Holds, Place
from emulator.trace import events
from emulator.trace.values import Parameters
from tests.unit.kernel.stage import Stage

properties = settings(derandomize=True, deadline=None)


def place(at: At = "checkpoint", of: str = "here", **words: str) -> Place:
    return Place("p", 1, at, of, **words)


def with_holds(stage: Stage) -> Holds:
    stage.kernel.holds = Holds(stage.kernel)
    return stage.kernel.holds


def test_a_thread_stands_at_a_checkpoint_and_the_next_one_passes() -> None:
    with Stage() as stage:
        holds = with_holds(stage)

        async def body(name: str) -> None:
            await stage.kernel.checkpoint("here")
            stage.say(name)

        holds.order(place())
        for name in ("a", "b", "c"):
            stage.spawn(name, body(name))
        assert stage.run() == ["b", "c"]
        assert holds.release(place()) == 1
        assert stage.run() == ["a"]


def test_only_what_fits_stands() -> None:
    with Stage() as stage:
        holds = with_holds(stage)
        holds.order(place(which="/brokers", thread="b"))
        caught = partial(holds.caught, "p", "checkpoint")
        stage.kernel.current = stage.process.lane("b").callback(None, -1)
        assert caught("there", ("/brokers/ids",)) is None
        assert caught("here", ("/controller",)) is None
        assert holds.caught("broker-2", "checkpoint", "here", ("/brokers",)) is None
        assert holds.caught("p", "zookeeper", "here", ("/brokers",)) is None
        stage.kernel.current = stage.process.lane("a").callback(None, -1)
        assert caught("here", ("/brokers",)) is None
        stage.kernel.current = stage.process.lane("b").callback(None, -1)
        assert caught("here", ("/controller", "/brokers/ids")) is not None


def test_a_released_order_that_nothing_came_to_holds_nothing() -> None:
    with Stage() as stage:
        holds = with_holds(stage)
        holds.order(place())
        assert holds.release(place()) == 1
        assert holds.release(place()) == 0
        assert holds.caught("p", "checkpoint", "here") is None


def test_a_thread_of_a_process_that_died_never_goes_on() -> None:
    with Stage() as stage:
        holds = with_holds(stage)

        async def body() -> None:
            await stage.kernel.checkpoint("here")
            stage.say("on")

        holds.order(place())
        stage.spawn("a", body())
        stage.run()
        stage.process.crash()
        holds.release(place())
        assert stage.run() == []


def test_what_stands_is_told_beside_its_story() -> None:
    """The fact has the cause of what stands; what that does later has the cause that it had."""
    with Stage() as stage:
        holds = with_holds(stage)

        async def body() -> None:
            stage.kernel.emit(events.ActionApplied, 0, "a", Parameters())
            await stage.kernel.checkpoint("here", "Fetch")
            stage.kernel.emit(events.ActionApplied, 0, "b", Parameters())

        holds.order(place())
        stage.spawn("a", body())
        stage.run()
        stage.kernel.emit(events.ActionApplied, 0, "release", Parameters())
        holds.release(place())
        stage.run()
        _, stands, _, goes_on = stage.kernel.sink.events
        assert isinstance(stands, events.Parked)
        assert (stands.cause, stands.thread, stands.of, stands.which) == (0, "a", "here", "Fetch")
        assert goes_on.cause == 0


@properties
@given(st.lists(st.sampled_from(["message", "hold", "release", "run"]), max_size=14))
def test_a_passage_never_reorders(script: list[str]) -> None:
    """Whatever is held and released in between: what was written first arrives first, all of it."""
    with Stage() as stage:
        holds = with_holds(stage)
        passage = HoldPoint(stage.kernel, "request", "p", "q")
        told = place("request", "", peer="q")
        written, heard = 0, list[str]()
        for step in [*script, "release", "run"]:
            if step == "hold":
                holds.order(told)
            elif step == "release":
                holds.release(told)
            elif step == "run":
                heard += stage.run()
            else:
                pass_on = partial(stage.say, str(written))
                if not passage.stops("Fetch", pass_on):
                    pass_on()
                written += 1
        assert heard == [str(n) for n in range(written)]
