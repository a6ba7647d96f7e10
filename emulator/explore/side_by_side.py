"""Both sides of a comparison, seed after seed: the same seeds and the same faults for each.

Owns the order, the processes (in virtual time each play has its own; live plays come one after the
other, since they would make each other late), and which plays are kept: each side's first has a run
directory, so that it can be looked at. It must not know what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from emulator.conformance.forks import in_children
from emulator.hazards.base import recognise
from emulator.runtime.comparison import Measured, Meter, Variant, play_measured
from emulator.runtime.perform import SIMULATED, PlayFailed, Request, perform
from emulator.runtime.play import PlayOptions

OnPlay = Callable[[int, int], None]
"""Called with the side whose live play goes on, and the microseconds that it has come to."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played. `base`: below it the first plays are kept."""

    sides: tuple[Variant, Variant]
    seeds: Sequence[int]
    jobs: int
    zookeeper: str
    time_scale: int
    base: Path


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
    variant, seed = asked.sides[side], asked.seeds[0]
    request = Request(
        scenario=msgspec.structs.replace(
            variant.scenario, name=f"{variant.scenario.name}-{variant.name}"
        ),
        seed=seed,
        zookeeper=asked.zookeeper,
        time_scale=asked.time_scale,
        sets=variant.sets,
        repeat=variant.repeat,
        base=asked.base,
        recognise=recognise,
    )
    performed = perform(request, lambda progress: on_play(side, progress.at_us))
    meter = Meter(variant.scenario)
    for event in performed.events:
        meter(event)
    summary = performed.summary
    late = summary.kernel_was_late, round(summary.kernel_late_ms_max * 1000)
    measured = meter.measured(seed, performed.events, recognise, late)
    return Played(side, measured, performed.directory, summary.interrupted)


def _quiet(_side: int, _now_us: int) -> None:
    """Nobody is told from another process."""
