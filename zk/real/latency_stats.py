"""Statistics of a tap: requests per operation and path pattern, with results and latencies.

Memory is bounded however long it counts: times are rounded to two significant digits, which is
enough for percentiles. It does not know how they are printed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

import msgspec

from zk.errors import Code
from zk.ops import Multi, Request, name_of
from zk.patterns import pattern_of


class Row(msgspec.Struct):
    """All answered requests of one kind. Times in microseconds."""

    op: str
    pattern: str
    count: int
    errors: dict[str, int]
    median_us: int
    p99_us: int
    max_us: int


class Summary(msgspec.Struct):
    """All counts; `unanswered` requests have no response (yet)."""

    requests: int
    unanswered: int
    clients: int
    rows: list[Row]


class Times:
    """The distribution of response times."""

    def __init__(self) -> None:
        self._rounded: Counter[int] = Counter()
        self.count = self.max_us = 0

    def add(self, us: int) -> None:
        self.count += 1
        self.max_us = max(self.max_us, us)
        unit = 10 ** max(0, len(str(us)) - 2)
        self._rounded[us // unit * unit] += 1

    def percentile_us(self, percent: int) -> int:
        """The time that at most this percentage of responses did not exceed, rounded down to two
        digits."""
        # Nearest rank, as in emulator.trace.percentiles, but over counts, for weeks of samples.
        times = sorted(self._rounded)
        ranks = list(accumulate(self._rounded[us] for us in times))
        return times[bisect_left(ranks, -(-self.count * percent // 100))] if times else 0


class TapStatistics:
    """Counts a tap's requests and responses."""

    def __init__(self) -> None:
        self._requests = self._replies = 0
        self._clients: set[str] = set()
        self._times: dict[tuple[str, str], Times] = {}
        self._errors: dict[tuple[str, str], Counter[str]] = {}

    def on_request(self, client: str) -> None:
        self._requests += 1
        self._clients.add(client)

    def on_reply(self, request: Request | str, code: Code, elapsed_us: int) -> None:
        self._replies += 1
        kind = kind_of(request)
        self._times.setdefault(kind, Times()).add(elapsed_us)
        if code is not Code.OK:
            self._errors.setdefault(kind, Counter())[code.name] += 1

    def summary(self) -> Summary:
        """All counts, most frequent kinds first."""
        rows = []
        for kind, times in self._times.items():
            errors = dict(sorted(self._errors.get(kind, {}).items()))
            median_us, p99_us = times.percentile_us(50), times.percentile_us(99)
            rows.append(Row(*kind, times.count, errors, median_us, p99_us, times.max_us))
        rows.sort(key=lambda row: (-row.count, row.op, row.pattern))
        unanswered = self._requests - self._replies
        return Summary(self._requests, unanswered, len(self._clients), rows)


def kind_of(request: Request | str) -> tuple[str, str]:
    """Operation and pattern; those of a multi are combined from its operations."""
    if isinstance(request, str):
        return request, ""
    if isinstance(request, Multi):
        parts = [f"{name_of(op)} {pattern_of(op.path)}" for op in request.ops]
        return "multi", ", ".join(dict.fromkeys(parts))
    return name_of(request), pattern_of(request.path)
