"""Random seeds, and plays on a real ZooKeeper server, held to a recording."""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from emulator.cli.parts.progress import ProgressLine
from emulator.conformance import player
from emulator.conformance.actions import CannotPlay
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.recording import BadRecording, Recording
from emulator.view.event_text import counted

Played = TypeVar("Played")


def play_seeds(
    reference: Reference, script: player.Script, examined: list[Examined], until: int, jobs: int
) -> Verdict:
    """Of the seeds examined before and the next ones, which are added to `examined`."""

    def examine(_: int, run: Recording) -> Examined:
        return reference.examine(run)

    seeds = range(len(examined) + 1, until + 1)
    played = dict(player.blind_plays(script, seeds, examine, jobs))
    examined += (played[seed] for seed in seeds)
    return conclude(reference, examined)


def play_live(reference: Reference, script: player.Script, plays: int) -> Verdict | None:
    """None: no play was asked for."""
    if not plays:
        return None

    def examine(_: int, run: Recording) -> Examined:
        return reference.examine(run)

    played = player.live_plays(script, range(1, plays + 1), examine, "embedded")
    return conclude(reference, [one for _, one in played])


# -- durations in many recordings ------------------------------------------------------------------


def parser_of(about: str | None, seeds: int) -> argparse.ArgumentParser:
    """The arguments of a program that plays recordings; `seeds`: how many for each."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recordings", nargs="+", type=Path, help="folders of recordings")
    parser.add_argument("--seeds", type=int, default=seeds, help="seeds for each (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (%(default)s)")
    return parser


def seeds_of(folder: Path, number: int) -> range:
    """Each recording has seeds of its own: a process's first draws are the same in all plays under
    one seed."""
    first = zlib.crc32(str(folder).encode()) & 0xFFFF
    return range(first, first + number)


def play_each(play: Callable[[Path, int], Played], chosen: argparse.Namespace) -> Iterator[Played]:
    """What `play` returns for each recording that `parser_of` has parsed, and a number of seeds.
    Exits with one line for what is no recording."""
    number = len(chosen.recordings)
    with ProgressLine(total=number) as line, ProcessPoolExecutor(chosen.jobs) as pool:
        try:
            every = pool.map(play, chosen.recordings, [chosen.seeds] * number)
            for done, played in enumerate(every, 1):
                line.update(f"{done} of {counted(number, 'recording')} played", done)
                yield played
        except (BadRecording, CannotPlay) as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(f"error: {error}")
