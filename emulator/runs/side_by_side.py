"""Both sides of a comparison, seed after seed: the same seeds and the same faults for each.

Owns the order, the processes (in virtual time each play has its own; live plays come one after the
other, since they would make each other late), and which plays are kept: each side's first has a run
directory, so that it can be looked at. Whoever keeps plays elsewhere gets every one. It must not
know what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from emulator.invariants.known.base import recognise
from emulator.runs.comparison import Measured, Meter, Variant, play_measured
from emulator.runs.forks import in_children
from emulator.runs.perform import (
    SIMULATED,
    PlayFailed,
    Request,
    perform,
    perform_in_memory,
)
from emulator.runs.play import PlayOptions
from emulator.runs.summary import Summary

OnPlay = Callable[[int, int], None]
"""Called with the side whose live play goes on, and the microseconds that it has come to."""

Keep = Callable[[Variant, Request, Sequence[Any], Summary], None]
"""Given each play that is over, in the process that played it."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played. `base`: below it the first plays are kept; `keep` gets every play."""

    sides: tuple[Variant, Variant]
    seeds: Sequence[int]
    jobs: int
    zookeeper: str
    time_scale: int
    base: Path
    keep: Keep | None = None

    def request(self, side: int, place: int) -> Request:
        """One play, under a name that says its side."""
        variant, seed = self.sides[side], self.seeds[place]
        return Request(
            scenario=msgspec.structs.replace(
                variant.scenario, name=f"{variant.scenario.name}-{variant.name}"
            ),
            seed=seed,
            zookeeper=self.zookeeper,
            time_scale=self.time_scale,
            sets=variant.sets,
            repeat=variant.repeat(seed),
            base=self.base,
            recognise=recognise,
        )


class Played(NamedTuple):
    """One play that is over; `directory` where it is kept. `broken_off`: by the user."""

    side: int
    measured: Measured
    directory: Path | None
    broken_off: bool = False


def plays(asked: Asked, on_play: OnPlay) -> Iterator[Played]:
    """Every seed of both sides, as they come."""
    todo = [(side, place) for place in range(len(asked.seeds)) for side in range(2)]
    if asked.zookeeper != SIMULATED:
        for side, place in todo:
            yield _play(asked, side, place, on_play)
        return
    work = in_children(todo, lambda one: _play(asked, *one, _quiet), asked.jobs)
    for _, played in work:
        yield played


def _play(asked: Asked, side: int, place: int, on_play: OnPlay) -> Played:
    try:
        if place == 0:
            return _kept(asked, side, on_play)
        if asked.keep is not None:
            request = asked.request(side, place)
            summary, events = perform_in_memory(request, lambda now_us: on_play(side, now_us))
            asked.keep(asked.sides[side], request, events, summary)
            return Played(side, _measured(request, events, summary), None)
        options = PlayOptions(
            seed=asked.seeds[place],
            zookeeper=asked.zookeeper,
            time_scale=asked.time_scale,
            on_progress=lambda now_us: on_play(side, now_us),
        )
        measured, outcome = play_measured(asked.sides[side], options, recognise)
        return Played(side, measured, None, outcome.interrupted)
    except PlayFailed as failed:
        raise failed.__cause__ or failed from None


def _kept(asked: Asked, side: int, on_play: OnPlay) -> Played:
    """As `isr run` plays it, with its run directory."""
    request = asked.request(side, 0)
    performed = perform(request, lambda progress: on_play(side, progress.at_us))
    summary = performed.summary
    measured = _measured(request, performed.events, summary)
    if asked.keep is not None and not summary.interrupted:
        asked.keep(asked.sides[side], request, performed.events, summary)
    return Played(side, measured, performed.directory, summary.interrupted)


def _measured(request: Request, events: Sequence[Any], summary: Summary) -> Measured:
    """What a play's trace says, once it is over."""
    meter = Meter(request.scenario)
    for event in events:
        meter(event)
    late = summary.kernel_was_late, round(summary.kernel_late_ms_max * 1000)
    return meter.measured(request.seed, events, recognise, late)


def _quiet(_side: int, _now_us: int) -> None:
    """Nobody is told from another process."""
