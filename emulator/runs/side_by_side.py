"""Plays both sides of a comparison with the same seeds and faults.

Owns the order, the processes (in virtual time each play has its own; live plays run one after the
other, because they would delay each other), and which plays are kept: each side's first one has a
run directory. `keep` lets a caller store every play elsewhere. It must not know what is measured.
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
"""A file name is limited to 255 bytes."""

OnPlay = Callable[[int, int], None]
"""Called with the side of the running live play, and its time in microseconds."""

Keep = Callable[[Variant, Request, Played], None]
"""Called with each finished play, in the process that played it."""


class Plays(msgspec.Struct, frozen=True, kw_only=True):
    """The plays to make. `base`: the parent of the first plays' directories; `keep` receives every
    play."""

    sides: tuple[Variant, Variant]
    seeds: Sequence[int]
    jobs: int
    zookeeper: str
    time_scale: int
    base: Path
    keep: Keep | None = None

    def request(self, side: int, place: int) -> Request:
        """One play, under a name that contains its side and differs from any scenario's."""
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
    """One finished play; `directory`: its run directory."""

    side: int
    measured: Measured
    directory: Path | None
    is_interrupted: bool = False


def play_sides(plays: Plays, on_play: OnPlay) -> Iterator[PlayOfSide]:
    """Play every seed of both sides, and yield the results as they finish."""
    todo = [(side, place) for place in range(len(plays.seeds)) for side in range(2)]
    if plays.zookeeper != SIMULATED:
        for side, place in todo:
            yield _play(plays, side, place, on_play)
        return
    # Children report no progress: the parent counts finished plays.
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
