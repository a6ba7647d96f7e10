"""Both sides of a comparison, seed after seed: the same seeds and the same faults for each.

Owns the order, the processes (in virtual time each play has its own; live plays come one after the
other, since they would make each other late), and which plays are kept: each side's first has a run
directory, so that it can be looked at. A caller that keeps plays elsewhere gets every one. It must
not know what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from emulator.runs.comparison import Measured, Variant, measure
from emulator.runs.forks import in_children
from emulator.runs.play import SIMULATED
from emulator.runs.session import (
    Played,
    PlayFailed,
    Request,
    RunListeners,
    play_in_memory,
    play_run,
)
from emulator.trace.state import TraceState

NAME_MAX = 150
"""A folder's name may have 255 bytes."""

OnPlay = Callable[[int, int], None]
"""Called with the side whose live play goes on, and the microseconds that it has come to."""

Keep = Callable[[Variant, Request, Played], None]
"""Called with each play that is over, in the process that played it."""


class Plays(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played. `base`: below it the first plays are kept; `keep` gets every play."""

    sides: tuple[Variant, Variant]
    seeds: Sequence[int]
    jobs: int
    zookeeper: str
    time_scale: int
    base: Path
    keep: Keep | None = None

    def request(self, side: int, place: int) -> Request:
        """One play, kept under a name that says its side and is no scenario's."""
        variant, seed = self.sides[side], self.seeds[place]
        name = f"{variant.scenario.name}-compare-{variant.name.replace('/', '_')}"
        return Request(
            scenario=msgspec.structs.replace(variant.scenario, name=name[:NAME_MAX]),
            seed=seed,
            zookeeper=self.zookeeper,
            time_scale=self.time_scale,
            sets=variant.sets,
            repeat=variant.repeat(seed),
            base=self.base,
        )


class PlayOfSide(NamedTuple):
    """One play that is over; `directory`: where it is kept."""

    side: int
    measured: Measured
    directory: Path | None
    is_interrupted: bool = False


def play_sides(plays: Plays, on_play: OnPlay) -> Iterator[PlayOfSide]:
    """Every seed of both sides, as they come."""
    todo = [(side, place) for place in range(len(plays.seeds)) for side in range(2)]
    if plays.zookeeper != SIMULATED:
        for side, place in todo:
            yield _play(plays, side, place, on_play)
        return
    # A child's progress is not shown: the parent counts finished plays.
    for _, played in in_children(
        todo, lambda one: _play(plays, *one, lambda _side, _now_us: None), plays.jobs
    ):
        yield played


def _play(plays: Plays, side: int, place: int, on_play: OnPlay) -> PlayOfSide:
    request, states = plays.request(side, place), list[TraceState]()

    def attach(listeners: RunListeners) -> None:
        states.append(listeners.state)

    if place == 0:
        try:
            played = play_run(
                request, lambda progress: on_play(side, progress.at_us), attach=attach
            )
        except PlayFailed as failed:
            raise failed.__cause__ or failed from None
    else:
        played = play_in_memory(request, lambda now_us: on_play(side, now_us), attach=attach)
    is_interrupted = played.summary.interrupted
    if plays.keep is not None and not is_interrupted:
        plays.keep(plays.sides[side], request, played)
    return PlayOfSide(side, measure(played, states[0]), played.directory, is_interrupted)
