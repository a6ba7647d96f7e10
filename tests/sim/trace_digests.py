"""A program: plays shipped scenarios under each seed, and prints what identifies their traces.

`python -m tests.sim.trace_digests NAME,... SEED...`: a line for each name and seed, with the number
of events and a digest of all of them.
"""

from __future__ import annotations

import sys
from hashlib import sha256

import msgspec

from emulator.runs.play import PlayOptions, play
from emulator.trace.sink import Sink
from tests.sim.shipped_runs import scenario


def digest(name: str, seed: int) -> str:
    sink = Sink()
    play(scenario(name), PlayOptions(seed=seed), sink)
    encoder, found = msgspec.json.Encoder(), sha256()
    for event in sink.events:
        found.update(encoder.encode(event))
    return f"{name} {seed} {len(sink.events)} {found.hexdigest()}"


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        for seed in sys.argv[2:]:
            print(digest(name, int(seed)), flush=True)
