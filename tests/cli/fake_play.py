"""A play that needs no world: it tells a prepared story, so that the command around it is tried.

Run as a program it does so in a process of its own that can be interrupted or killed:
`python fake_play.py NAME ARGUMENTS...` with the name of one of the functions below.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

from emulator.runs import play as the_real_one
from emulator.runs.play import Outcome, PlayOptions
from emulator.trace.sink import Sink
from tests.unit.scenario.story import Story

Play = Callable[[Any, Any, Sink], Any]


def ended(*, kernel_late_us: int = 0, interrupted: bool = False) -> Outcome:
    return Outcome(22_000_000, 7, kernel_late_us, interrupted)


def telling(story: Story, outcome: Outcome | None = None) -> Play:
    """A play in which this happens."""

    def play(scenario: Any, options: PlayOptions, sink: Sink) -> Outcome:
        tell(story, options, sink)
        return outcome or ended()

    return play


def raising(error: BaseException, story: Story | None = None) -> Play:
    """A play that ends so, after the story if there is one."""

    def play(scenario: Any, options: PlayOptions, sink: Sink) -> Outcome:
        tell(story or Story().created(), options, sink)
        raise error

    return play


def tell(story: Story, options: PlayOptions, sink: Sink) -> None:
    for event in story.events:
        sink.append(event)
    if options.on_progress is not None:
        options.on_progress(story.events[-1].t)


def shrink_and_expand() -> Story:
    """A follower leaves and comes back, with some records and a notification."""
    story = Story().action("create_topic", topic="orders", assignment=[[1, 2, 3]], config={})
    story.created().at(2).appended(1, 0, 50).appended(2, 0, 50).produced(0, 50, acks="1")
    story.at(7.5).written(1, 1, 3).at(11).written(2, 1, 3, 2, change="expand")
    return story.at(17).notified().shown(2, 1, 3, 2)


def told(scenario: Any, options: PlayOptions, sink: Sink) -> Outcome:
    """Tells the story, and that is all."""
    return telling(shrink_and_expand())(scenario, options, sink)  # type: ignore[no-any-return]


def stuck(scenario: Any, options: PlayOptions, sink: Sink) -> Outcome:
    """Tells the story, says so on standard output, and waits for a signal."""
    tell(shrink_and_expand(), options, sink)
    print("told", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    from emulator import cli

    the_real_one.play = globals()[sys.argv[1]]
    sys.exit(cli.execute(sys.argv[2:]))
