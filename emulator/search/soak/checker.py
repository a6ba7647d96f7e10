"""Judges a history of clients: is there one log per partition that explains all observations?

The log is what complete scans read after all producers had ended. An acknowledged record is in it,
once, at the acknowledged offset (lost, duplicated, moved). A producer's records are in the order of
sending, and a record that was acknowledged before another was sent precedes it (reordered).
Whatever was ever read at an offset is in the log there (read, later gone). Offsets have no gap
(gap). No record was read that was never sent (unsent). A record whose send failed may be in the log
or not; one that its client resent with another producer epoch may be there twice. Imports only the
history, so that a bug of the emulator cannot hide here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from emulator.search.soak.history import Operation

LOST, DUPLICATED, MOVED, REORDERED = "lost", "duplicated", "moved", "reordered"
GONE, GAP, UNSENT = "read, later gone", "gap", "unsent"
KINDS = (LOST, DUPLICATED, MOVED, REORDERED, GONE, GAP, UNSENT)
LATE_US = 1_000_000
"""A client may report its new producer epoch this much later than an acknowledgement."""


class Finding(msgspec.Struct, frozen=True):
    """A contradiction. It arose between `from_us`, when all was still well, and `to_us`, when the
    history first shows it."""

    kind: str
    partition: str
    offset: int
    record: str
    text: str
    from_us: int
    to_us: int


class HistoryVerdict(msgspec.Struct, frozen=True):
    """The content of a history and its contradictions. `sent_again`: records that are in a log more
    than once because their client resent them with another producer epoch. `unread`: partitions
    that no scan read up to the end; losses there are unknown."""

    sent: int
    acknowledged: int
    failed: int
    unresolved: int
    read: int
    fatal: int
    sent_again: int
    findings: tuple[Finding, ...]
    unread: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each kind that occurs."""
        return dict(Counter(finding.kind for finding in self.findings))


class _Observation(msgspec.Struct, frozen=True):
    """A record at an offset, as a scan saw it."""

    record: str
    at_us: int
    who: str


class _Scan:
    """One pass of a reader through a partition."""

    def __init__(self) -> None:
        self.next_offset = -1
        self.last_us = 0
        self.end: Operation | None = None
        self.records: dict[int, str] = {}


class _Partition:
    """The observations of one partition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sends: dict[str, Operation] = {}
        self.acknowledgements: dict[str, Operation] = {}
        self.resolved_us: dict[str, int] = {}
        """When its client last received a result for each record."""
        self.epochs: dict[str, list[int]] = defaultdict(list)
        """When each client took a new producer epoch."""
        self.sent_again = 0
        self.floors: dict[str, tuple[int, Operation]] = {}
        """For each record sent: the highest offset acknowledged before."""
        self.highest: Operation | None = None
        self.seen: dict[int, list[_Observation]] = defaultdict(list)
        """For each offset, the first observation of each record there."""
        self.scans: dict[tuple[str, int], _Scan] = defaultdict(_Scan)
        self.last_seen_us: dict[tuple[int, str], int] = {}
        self.findings: list[Finding] = []

    # -- the history, line by line -----------------------------------------------------------------

    def take(self, one: Operation) -> None:
        match one.op:
            case "send":
                self.sends.setdefault(one.record, one)
                if self.highest is not None:
                    self.floors[one.record] = self.highest.offset, self.highest
            case "epoch":
                self.epochs[one.client].append(one.at_us)
            case "failed":
                self.resolved_us[one.record] = one.at_us
            case "acknowledged":
                self.resolved_us[one.record] = one.at_us
                self.acknowledgements[one.record] = one
                if one.offset >= 0 and (self.highest is None or one.offset > self.highest.offset):
                    self.highest = one
            case "read":
                self._read(one)
            case "end":
                self.scans[one.client, one.scan].end = one
            case _:
                pass

    def _read(self, one: Operation) -> None:
        scan = self.scans[one.client, one.scan]
        if scan.next_offset >= 0 and one.offset != scan.next_offset:
            what = "skips" if one.offset > scan.next_offset else "goes back from"
            text = f"{one.client} {what} offset {scan.next_offset}: the next is {one.offset}"
            self._add(GAP, scan.next_offset, "", text, scan.last_us, one.at_us)
        for offset, record in enumerate(one.records, one.offset):
            scan.records[offset] = record
            self.last_seen_us[offset, record] = one.at_us
            if all(sight.record != record for sight in self.seen[offset]):
                self.seen[offset].append(_Observation(record, one.at_us, one.client))
        scan.next_offset, scan.last_us = one.offset + len(one.records), one.at_us

    # -- the judgement -----------------------------------------------------------------------------

    def judge(self) -> bool:
        """Judge everything if a scan read up to the end, otherwise only what reads show. Return
        whether one did."""
        self._judge_reads()
        whole = [(scan.end, scan.records) for scan in self.scans.values() if scan.end is not None]
        if not whole:
            return False
        # The scan that came furthest; of several, the last one, which includes everything before
        # it.
        end, records = max(whole, key=lambda one: (one[0].until, one[0].at_us))
        self._judge_log(records, end)
        return True

    def _judge_reads(self) -> None:
        """All reads agree on each offset's record, and it was sent."""
        for offset, sights in sorted(self.seen.items()):
            for before, after in pairwise(sights):
                text = (
                    f"{before.who} read {before.record} at offset {offset},"
                    f" {after.who} later {after.record}"
                )
                last_us = self.last_seen_us[offset, before.record]
                from_us = min(last_us, after.at_us)
                self._add(GONE, offset, before.record, text, from_us, after.at_us)
            for sight in sights:
                if sight.record not in self.sends:
                    text = f"{sight.who} read {sight.record!r} at offset {offset}; nobody sent it"
                    self._add(UNSENT, offset, sight.record, text, sight.at_us, sight.at_us)

    def _judge_log(self, log: dict[int, str], end: Operation) -> None:
        offsets: dict[str, list[int]] = defaultdict(list)
        for offset in range(end.offset, end.until):
            if offset in log:
                offsets[log[offset]].append(offset)
            else:
                text = f"the log from {end.offset} to {end.until} has nothing at offset {offset}"
                self._add(GAP, offset, "", text, 0, end.at_us)
        for record, places in offsets.items():
            if len(places) > 1 and self._was_sent_again(record, end):
                self.sent_again += 1
            elif len(places) > 1:
                text = f"{record} is in the log at offsets {', '.join(map(str, places))}"
                seen_us = self.seen[places[1]][0].at_us
                sent = self.sends.get(record)
                from_us = sent.at_us if sent else 0
                self._add(DUPLICATED, places[1], record, text, from_us, seen_us)
        for record, acknowledgement in self.acknowledgements.items():
            self._judge_acknowledged(acknowledgement, offsets.get(record, []), log, end)
        for offset, sights in sorted(self.seen.items()):
            if offset >= end.until or offset < end.offset:
                last = sights[-1]
                text = f"{last.who} read {last.record} at offset {offset}, outside of the log"
                last_us = self.last_seen_us[offset, last.record]
                self._add(GONE, offset, last.record, text, last_us, end.at_us)
        self._judge_order(offsets)

    def _was_sent_again(self, record: str, end: Operation) -> bool:
        """Whether its client took a new producer epoch while the record was in flight."""
        sent = self.sends.get(record)
        until_us = self.resolved_us.get(record, end.at_us) + LATE_US
        return sent is not None and any(
            sent.at_us <= at_us <= until_us for at_us in self.epochs[sent.client]
        )

    def _judge_acknowledged(
        self, ack: Operation, places: list[int], log: dict[int, str], end: Operation
    ) -> None:
        if not places:
            other = log.get(ack.offset)
            instead = f"; offset {ack.offset} has {other}" if other else ""
            text = f"{ack.record} was acknowledged at offset {ack.offset}, and is gone{instead}"
            sights = self.seen.get(ack.offset, [])
            # From the last read of the record to the first read of another one in its place.
            last_us = self.last_seen_us.get((ack.offset, ack.record), ack.at_us)
            others = [one.at_us for one in sights if one.record != ack.record]
            to_us = min(others, default=end.at_us)
            self._add(LOST, ack.offset, ack.record, text, min(last_us, to_us), to_us)
        elif ack.offset >= 0 and ack.offset not in places:
            text = f"{ack.record} was acknowledged at offset {ack.offset}, and is at {places[0]}"
            self._add(MOVED, ack.offset, ack.record, text, ack.at_us, end.at_us)

    def _judge_order(self, offsets: dict[str, list[int]]) -> None:
        latest: dict[str, tuple[int, int]] = {}
        for record, places in sorted(offsets.items(), key=lambda one: one[1][0]):
            client, _, number = record.rpartition(".")
            if record not in self.sends:
                continue
            sent_us, seen_us = self.sends[record].at_us, self.seen[places[0]][0].at_us
            before, at = latest.get(client, (-1, -1))
            if int(number) < before:
                text = f"{record} is at offset {places[0]}, behind {client}.{before} at {at}"
                self._add(REORDERED, places[0], record, text, sent_us, seen_us)
            else:
                latest[client] = int(number), places[0]
            floor, earlier = self.floors.get(record, (-1, None))
            if earlier is not None and places[0] <= floor:
                text = (
                    f"{record} was sent after {earlier.record} was acknowledged at offset {floor},"
                    f" and is before it at {places[0]}"
                )
                self._add(REORDERED, places[0], record, text, sent_us, seen_us)

    def _add(
        self, kind: str, offset: int, record: str, text: str, from_us: int, to_us: int
    ) -> None:
        finding = Finding(kind, self.name, offset, record, text, from_us, to_us)
        self.findings.append(finding)


def judge(history: Iterable[Operation]) -> HistoryVerdict:
    """All contradictions, in the order in which the history shows them."""
    partitions: dict[str, _Partition] = {}
    ops: Counter[str] = Counter()
    read = 0
    unresolved: set[str] = set()
    for one in history:
        ops[one.op] += 1
        read += len(one.records)
        if one.op == "send":
            unresolved.add(one.record)
        elif one.op in ("acknowledged", "failed"):
            unresolved.discard(one.record)
        if one.partition:
            name = one.partition
            partitions.setdefault(name, _Partition(name)).take(one)
    unread = tuple(name for name, one in sorted(partitions.items()) if not one.judge())
    findings = [finding for one in partitions.values() for finding in one.findings]
    return HistoryVerdict(
        sent=ops["send"],
        acknowledged=ops["acknowledged"],
        failed=ops["failed"],
        unresolved=len(unresolved),
        read=read,
        fatal=ops["fatal"],
        sent_again=sum(one.sent_again for one in partitions.values()),
        findings=tuple(sorted(findings, key=lambda one: (one.to_us, one.partition, one.offset))),
        unread=unread,
    )
