"""Worlds of `isr fuzz` played in a process of its own, whose strings hash as told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

TRY = "import sys; from emulator.explore.trial import try_seed; print(*(try_seed(int(s), "
TRY += "digest=True).digest for s in sys.argv[1:]))"


def digests_elsewhere(seeds: Sequence[int], hashing: int) -> list[str]:
    """The digest of each seed's whole trace."""
    done = subprocess.run(
        [sys.executable, "-c", TRY, *map(str, seeds)],
        env={**os.environ, "PYTHONHASHSEED": str(hashing)},
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.split()
