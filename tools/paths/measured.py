"""How long ISR changes of a recording took: decided, written, in force, in the metadata of brokers
that ran. Real recordings and runs exported as such are measured by the same lines.

Owns what is measured. It must not know which version, or which path, a recording is of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from emulator.conformance.recording import Fact, Recording, partition_of
from emulator.conformance.znodes import partition_of_state

OPEN = 1 << 60
MANY = 100


@dataclass
class Change:
    """One ISR change; times as recorded, in milliseconds."""

    partition: str
    version: int
    decided: int
    effective: int


@dataclass
class Delays:
    """Of several recordings of one script; milliseconds."""

    written: list[int] = field(default_factory=list)
    effective: list[int] = field(default_factory=list)
    metadata: list[int] = field(default_factory=list)
    never_shown: int = 0
    changes: int = 0
    storm_written: list[int] = field(default_factory=list)
    storm_effective: list[int] = field(default_factory=list)
    storm_shown: list[int] = field(default_factory=list)

    def add(self, recording: Recording) -> None:
        """One more."""
        changes = list(changes_of(recording))
        written, shown = writes(recording), Shown(recording)
        self.changes += len(changes)
        for one in changes:
            self.effective.append(one.effective - one.decided)
            at = written.get((one.partition, one.version))
            self.written += [] if at is None else [at - one.decided]
            self.metadata += shown.delays(one)
            self.never_shown += not shown.was_shown(one)
        self._add_pass([one for one in changes if in_first_pause(recording, one)], written, shown)

    def take(self, other: Delays) -> None:
        """Put another's to these."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _add_pass(
        self, changes: list[Change], written: dict[tuple[str, int], int], shown: Shown
    ) -> None:
        """Many partitions that lose a follower at once."""
        if len(changes) < MANY:
            return
        began = min(one.decided for one in changes)
        times = [written[one.partition, one.version] for one in changes]
        self.storm_written.append(max(times) - began)
        self.storm_effective.append(max(one.effective for one in changes) - began)
        self.storm_shown.append(max(max(shown.since(began, one), default=0) for one in changes))


def changes_of(recording: Recording) -> Iterator[Change]:
    """Those that came into force."""
    decided: dict[tuple[int, str], int] = {}
    for fact in recording.of("shrink", "expand", "alter_isr_proposed", "isr_updated"):
        key = fact["broker"], partition_of(fact)
        if fact["kind"] == "alter_isr_proposed":
            decided.setdefault(key, fact["t"])  # 2.7's log has no line for an expand
        elif fact["kind"] != "isr_updated":
            decided[key] = fact["t"]
        elif key in decided:
            yield Change(key[1], fact["zk_version"], decided.pop(key), fact["t"])


def in_first_pause(recording: Recording, change: Change) -> bool:
    """Whether it was decided while the first broker that was paused stood still."""
    first = next(pauses(recording), None)
    return first is not None and first[1] <= change.decided < first[2]


def writes(recording: Recording) -> dict[tuple[str, int], int]:
    """When each version of each state was written."""
    written = {}
    for one in recording.transactions:
        partition = partition_of_state(one.path)
        if partition and one.op == "setData":
            written[partition, one.version_after] = one.t
    return written


class Shown:
    """What brokers' metadata showed, and when each broker stood still."""

    def __init__(self, recording: Recording) -> None:
        self._updates: dict[tuple[str, int], list[Fact]] = {}
        for fact in recording.of("update_metadata"):
            if fact["t"] >= 0:
                self._updates.setdefault((partition_of(fact), fact["broker"]), []).append(fact)
        self._pauses = list(pauses(recording))

    def was_shown(self, change: Change) -> bool:
        """Whether some broker's metadata had exactly this version."""
        return any(
            fact["zk_version"] == change.version
            for (partition, _), facts in self._updates.items()
            if partition == change.partition
            for fact in facts
        )

    def delays(self, change: Change) -> list[int]:
        return self.since(change.decided, change)

    def since(self, began: int, change: Change) -> list[int]:
        """From then until each broker that ran had this version, or a later one."""
        delays = []
        for (partition, broker), facts in self._updates.items():
            if partition != change.partition:
                continue
            at = next((f["t"] for f in facts if f["zk_version"] >= change.version), None)
            if at is not None and not self._was_paused(broker, began, at):
                delays.append(at - began)
        return delays

    def _was_paused(self, broker: int, begin: int, end: int) -> bool:
        return any(who == broker and a < end and begin < b for who, a, b in self._pauses)


def pauses(recording: Recording) -> Iterator[tuple[int, int, int]]:
    """(broker, from, to) of each."""
    since: dict[int, int] = {}
    for fact in recording.of("stimulus"):
        broker = fact.get("broker")
        if fact["do"] == "pause" and broker:
            since[broker] = fact["t"]
        elif fact["do"] == "resume" and broker in since:
            yield broker, since.pop(broker), fact["t"]
    for broker, begin in since.items():
        yield broker, begin, OPEN
