"""Plays worlds of `isr fuzz` in separate processes with given hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

TRY = """\
import sys
from emulator.search.fuzz.trial import try_seed
for seed in sys.argv[1:]:
    trial = try_seed(int(seed), digest=True)
    print(seed, trial.digest, *[f"{one.invariant}: {one.text!r}" for one in trial.ours])
"""


def played_elsewhere(seeds: Sequence[int], hashings: Sequence[int]) -> list[list[str]]:
    """A process for each value of PYTHONHASHSEED, all at a time; what each says of the seeds: the
    seed, the digest of its whole trace, and failures of ours."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRY, *map(str, seeds)],
            env={**os.environ, "PYTHONHASHSEED": str(hashing)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hashing in hashings
    ]
    told = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(hashings)
    return told


def digests_elsewhere(seeds: Sequence[int], hashing: int) -> list[str]:
    """The digest of each seed's whole trace."""
    (lines,) = played_elsewhere(seeds, [hashing])
    return [line.split()[1] for line in lines]
