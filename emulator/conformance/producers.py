"""Point 7: what producers were told, by producer, and how long they were told nothing.

Owns the tally of results, when two tallies count as equal, and what a stall is. It must not
know why an answer came late: that is for the delays and the other points.
"""

from collections import defaultdict
from itertools import pairwise
from typing import TypeAlias

from emulator.conformance.recording import Recording

Tally: TypeAlias = dict[str, int]
"""How many results of each kind, or how many stalls, in the order first seen."""

STALL_MS = 1500
STALLS = " stalls"
"""Ends the key of how often a lane was told nothing."""
_FEW_ACKNOWLEDGED = 20
_SHARE_ACKNOWLEDGED = 0.05


def tallies_of(recording: Recording, stalls: dict[str, list[int]]) -> dict[str, Tally]:
    out: dict[str, Tally] = {}
    for result in recording.results:
        tally = out.setdefault(result.producer, {})
        tally[result.result] = tally.get(result.result, 0) + 1
    return out | {f"{lane}{STALLS}": {"stalls": len(gaps)} for lane, gaps in stalls.items()}


def stalls_of(recording: Recording) -> dict[str, list[int]]:
    """Per producer and partition, the milliseconds of each time nothing was acknowledged."""
    acknowledged: dict[str, list[int]] = defaultdict(list)
    for result in recording.results:
        if result.result == "ok":
            acknowledged[result.lane].append(result.t)
    return {
        lane: [later - t for t, later in pairwise(sorted(times)) if later - t > STALL_MS]
        for lane, times in acknowledged.items()
    }


def same_tally(real: Tally | None, run: Tally | None) -> bool:
    """The same kinds of results, as many stalls, and about as many acknowledged."""
    real, run = real or {}, run or {}
    if real.keys() != run.keys() or real.get("stalls") != run.get("stalls"):
        return False
    allowed = max(_FEW_ACKNOWLEDGED, _SHARE_ACKNOWLEDGED * real.get("ok", 0))
    return abs(real.get("ok", 0) - run.get("ok", 0)) <= allowed


def periods_ms(recording: Recording) -> dict[str, float]:
    """Per producer and partition, the time between two records that it was told to send."""
    return {
        f"{fact['topic']}-{partition} acks={fact['acks']}": 1000 / fact["rate"]
        for fact in recording.of("stimulus")
        if fact["do"] == "produce"
        for partition in fact["partitions"]
    }
