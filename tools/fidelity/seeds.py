"""Random seeds, and plays on a real ZooKeeper server, held to a recording."""

from __future__ import annotations

from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.recording import Recording


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
