"""A program: `isr`, with a fault planted. Draws depend on Python's own hash of a name, which every
process draws for itself: `python -m tests.cli.hash_dependent ARGUMENTS...`.
"""

from __future__ import annotations

import sys

from emulator import cli
from emulator.kernel import rng

if __name__ == "__main__":
    rng._name_hash = hash  # type: ignore[assignment]
    sys.exit(cli.execute(sys.argv[1:]))
