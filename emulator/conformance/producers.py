"""The criterion "producer results": responses by producer, and gaps without any acknowledgement.

Owns the count of results, when two counts are equal, and the definition of a stall. It must not
know why a response was late: the delays and the other criteria cover that.
"""

from collections import defaultdict
from itertools import pairwise
from typing import TypeAlias

from emulator.conformance.recording import Recording

ResultCounts: TypeAlias = dict[str, int]
"""The number of results of each kind, or of stalls, in order of first occurrence."""

STALL_MS = 1500
STALLS = " stalls"
"""Suffix of the key that counts a lane's stalls."""
_FEW_ACKNOWLEDGED = 20
_SHARE_ACKNOWLEDGED = 0.05


def result_counts_of(recording: Recording, stalls: dict[str, list[int]]) -> dict[str, ResultCounts]:
    out: dict[str, ResultCounts] = {}
    for result in recording.results:
        counts = out.setdefault(result.producer, {})
        counts[result.result] = counts.get(result.result, 0) + 1
    return out | {f"{lane}{STALLS}": {"stalls": len(gaps)} for lane, gaps in stalls.items()}


def stalls_of(recording: Recording) -> dict[str, list[int]]:
    """The length of each gap without an acknowledgement, in ms, by producer and partition."""
    acknowledged: dict[str, list[int]] = defaultdict(list)
    for result in recording.results:
        if result.result == "ok":
            acknowledged[result.lane].append(result.t)
    return {
        lane: [later - t for t, later in pairwise(sorted(times)) if later - t > STALL_MS]
        for lane, times in acknowledged.items()
    }


def has_equal_counts(real: ResultCounts | None, run: ResultCounts | None) -> bool:
    """Whether the kinds of results and the number of stalls are equal, and the number of
    acknowledgements is similar."""
    real, run = real or {}, run or {}
    if real.keys() != run.keys() or real.get("stalls") != run.get("stalls"):
        return False
    allowed = max(_FEW_ACKNOWLEDGED, _SHARE_ACKNOWLEDGED * real.get("ok", 0))
    return abs(real.get("ok", 0) - run.get("ok", 0)) <= allowed


def periods_ms(recording: Recording) -> dict[str, float]:
    """The interval between two records, in ms, by producer and partition."""
    return {
        f"{fact['topic']}-{partition} acks={fact['acks']}": 1000 / fact["rate"]
        for fact in recording.of("stimulus")
        if fact["do"] == "produce"
        for partition in fact["partitions"]
    }
