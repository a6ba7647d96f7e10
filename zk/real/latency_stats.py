"""What passed a tap, counted: requests per operation and path pattern, their results, their times.

Owns numbers only, bounded however long it counts: times are kept with two digits that count, which
is as exact as percentiles need. Who prints them, and when, it does not know.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from zk.errors import Code
from zk.ops import Multi, Request, name_of
from zk.patterns import pattern_of


class Row(msgspec.Struct):
    """All requests of one kind that were answered. Times in microseconds."""

    op: str
    pattern: str
    count: int
    errors: dict[str, int]
    median_us: int
    p99_us: int
    max_us: int


class Summary(msgspec.Struct):
    """Everything that was counted; `unanswered` were asked and got no answer (yet)."""

    requests: int
    unanswered: int
    clients: int
    rows: list[Row]


class Times:
    """How long answers took."""

    def __init__(self) -> None:
        self._rounded: Counter[int] = Counter()
        self.count = self.max_us = 0

    def add(self, us: int) -> None:
        self.count += 1
        self.max_us = max(self.max_us, us)
        unit = 10 ** max(0, len(str(us)) - 2)
        self._rounded[us // unit * unit] += 1

    def percentile_us(self, share: float) -> int:
        """The time within which this share of the answers came, rounded down to two digits."""
        wanted, seen = share * self.count, 0
        for us in sorted(self._rounded):
            seen += self._rounded[us]
            if seen >= wanted:
                return us
        return 0


class Tally:
    """Counts what a tap tells."""

    def __init__(self) -> None:
        self._asked = self._answered = 0
        self._clients: set[str] = set()
        self._times: dict[tuple[str, str], Times] = {}
        self._errors: dict[tuple[str, str], Counter[str]] = {}

    def on_request(self, client: str) -> None:
        self._asked += 1
        self._clients.add(client)

    def on_reply(self, request: Request | str, code: Code, elapsed_us: int) -> None:
        self._answered += 1
        kind = kind_of(request)
        self._times.setdefault(kind, Times()).add(elapsed_us)
        if code is not Code.OK:
            self._errors.setdefault(kind, Counter())[code.name] += 1

    def summary(self) -> Summary:
        """The most frequent kinds first."""
        rows = [self._row(kind, times) for kind, times in self._times.items()]
        rows.sort(key=lambda row: (-row.count, row.op, row.pattern))
        unanswered = self._asked - self._answered
        return Summary(self._asked, unanswered, len(self._clients), rows)

    def _row(self, kind: tuple[str, str], times: Times) -> Row:
        median_us, p99_us = times.percentile_us(0.5), times.percentile_us(0.99)
        errors = dict(sorted(self._errors.get(kind, {}).items()))
        return Row(*kind, times.count, errors, median_us, p99_us, times.max_us)


def kind_of(request: Request | str) -> tuple[str, str]:
    """Operation and pattern; a multi has those of its parts."""
    if isinstance(request, str):
        return request, ""
    if isinstance(request, Multi):
        parts = [f"{name_of(op)} {pattern_of(op.path)}" for op in request.ops]
        return "multi", ", ".join(dict.fromkeys(parts))
    return name_of(request), pattern_of(request.path)
