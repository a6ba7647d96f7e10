"""A recording in memory: settings, facts in time order, and the results of producers.

Owns reading and writing the format of a recording's folder (`recording.jsonl`, `produce.jsonl`,
each optionally with `.gz`). A fact stays the plain dict of its JSON line: the format is open, each
version logs different fields, and an absent field has a meaning. Facts that the judge reads often
(transactions, producer results) are typed here. Facts are never changed in place. This module must
not know what is compared.
"""

import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from emulator.conformance.znodes import complaint_about_payload
from emulator.trace.untrusted_json import decode_untrusted
from zk import paths

Fact: TypeAlias = dict[str, Any]
T = TypeVar("T")

_Fields: TypeAlias = dict[str, type]
_PARTITION: _Fields = {"broker": int, "topic": str, "partition": int}
_CHANGE: _Fields = _PARTITION | {"from_isr": list, "to_isr": list}
_PROPOSAL: _Fields = {"isr": list, "leader_epoch": int, "zk_version": int, "pending": object}
_NEEDED: dict[str, _Fields] = {
    "stimulus": {"do": str},
    "zookeeper": {"op": str},
    "zookeeper_request": {"broker": int, "op": str},
    "shrink": _CHANGE,
    "expand": _CHANGE,
    "isr_update_rejected": _PARTITION | {"cached_zk_version": int},
    "alter_isr_proposed": _PARTITION | _PROPOSAL,
    "log_truncated": _PARTITION,
    "leader_and_isr": _PARTITION,
    "leader_and_isr_ignored": _PARTITION,
    "stop_replica": _PARTITION,
    "stop_replica_ignored": _PARTITION,
    "update_metadata": _PARTITION,
    "metadata_removed": _PARTITION,
}
_NEEDED_OF_PRODUCE: _Fields = {"topic": str, "partitions": list, "rate": object, "acks": object}


SHELL_ENDS_MS = 500
"""A shell takes less than this from its write to its end; 30 to 82 ms in recordings."""

_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*")


class BadRecording(Exception):
    """A folder that is not a recording: the file, the line (0: the whole file), and the reason."""

    def __init__(self, file: Path, line: int, why: str) -> None:
        super().__init__(file, line, why)
        self.file, self.line, self.why = file, line, why

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


class ProduceResult(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The result of one record: `ok`, or the client library's name for the error. Other fields are
    not compared and therefore dropped.
    """

    t: int
    topic: str
    acks: str
    partition: int
    result: str
    offset: int | None = None

    @property
    def producer(self) -> str:
        return f"{self.topic} acks={self.acks}"

    @property
    def lane(self) -> str:
        return f"{self.topic}-{self.partition} acks={self.acks}"


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """One operation that ZooKeeper applied, and the broker whose session sent it. A multi has one
    per operation."""

    t: int
    broker: int | None
    op: str
    path: str
    data: str
    version: int | None

    @property
    def version_after(self) -> int:
        """The znode's version after a create or setData (logged only for setData)."""
        if self.op == "create":
            return 0
        assert self.version is not None, f"setData of {self.path} without a version"
        return self.version


@dataclass(frozen=True)
class Recording:
    """The recorded facts of one cluster under one script; the reader chooses the `name`."""

    settings: Fact
    events: list[Fact]
    results: list[ProduceResult] = field(default_factory=list)
    name: str = ""

    @cached_property
    def version(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.settings["kafka"].split("."))

    @cached_property
    def transactions(self) -> tuple[Transaction, ...]:
        return tuple(
            Transaction(
                fact["t"],
                fact.get("broker"),
                op["op"],
                op.get("path") or "",
                op.get("data") or "",
                op.get("version"),
            )
            for fact in self.of("zookeeper")
            for op in fact.get("ops", [fact])
        )

    @cached_property
    def _facts_when_written(self) -> list[Fact]:
        return _commands_when_written(self.events)

    def of(self, *kinds: str) -> Iterator[Fact]:
        """The facts of these kinds, each command of Kafka's tools when its znode was written."""
        return (fact for fact in self._facts_when_written if fact["kind"] in kinds)

    def fields(self, kind: str) -> frozenset[str]:
        """All fields of facts of this kind, which are the fields that this version logs."""
        return frozenset(key for fact in self.of(kind) for key in fact)


def partition_of(fact: Fact) -> str:
    return f"{fact.get('topic')}-{fact.get('partition')}"


def read_recording(folder: Path | str) -> Recording:
    """Read the recording in a folder. A plain file is preferred to its compressed twin."""
    file = _find(Path(folder), "recording.jsonl")
    if file is None:
        raise BadRecording(Path(folder), 0, "neither recording.jsonl nor recording.jsonl.gz here")
    settings, *events = _lines(file, _fact) or [{}]
    if settings.get("kind") != "settings":
        raise BadRecording(file, 1, "the first line is not the settings")
    kafka = settings.get("kafka")
    if not isinstance(kafka, str) or not _VERSION.fullmatch(kafka):
        raise BadRecording(file, 1, f"settings: kafka is not a version: {kafka!r}")
    produced = _find(Path(folder), "produce.jsonl")
    results = _lines(produced, lambda line: decode_untrusted(line, _RESULT)) if produced else []
    return Recording(settings, events, results, str(folder))


def _commands_when_written(facts: list[Fact]) -> list[Fact]:
    """The facts with each command of Kafka's tools at the time when its znode was written. The
    recorder notes the first request of the tool, which is a read up to 343 ms earlier, but a shell
    when it has ended. A reassignment by request is noted when its topic was written; it is moved to
    the controller's first check whether another one is under way.
    """
    commands = [
        (number, written)
        for number, fact in enumerate(facts)
        if fact["kind"] == "stimulus" and (written := _write_of(fact)) is not None
    ]
    if not commands:
        # A guided search exports a run in many small pieces, most of them without a command.
        return facts
    writes = [
        (fact["t"], (op["op"], op.get("path")))
        for fact in facts
        if fact["kind"] == "zookeeper" and not fact.get("broker")
        for op in fact.get("ops", [fact])
    ]
    moved = list(facts)
    until: dict[tuple[str, str], float] = {}
    """When the next command wrote the same, or was given: that write is not this one's."""
    for number, written in reversed(commands):
        fact = facts[number]
        noted_ms, until_ms = fact["t"], until.get(written, math.inf)
        from_ms = noted_ms - (SHELL_ENDS_MS if fact["do"] == "delete_controller" else 0)
        own = [t for t, what in writes if what == written and from_ms <= t < until_ms]
        at: float | None = min(own, key=lambda t: abs(t - noted_ms), default=None)
        until[written] = noted_ms if at is None else at
        if at is None and fact["do"] == "reassign":
            at = _first_check_before(facts[:number])
        if at is not None:
            moved[number] = fact | {"t": at}
    return sorted(moved, key=lambda fact: fact["t"])


def _first_check_before(facts: list[Fact]) -> float | None:
    """When a controller first checked for the reassignment for which it checked again after a lost
    connection, right before the end of these facts. None: it did not lose its connection."""
    checks: list[Fact] = []
    for fact in reversed(facts):
        if fact["kind"] != "zookeeper_request":
            continue
        if checks and fact["broker"] != checks[0]["broker"]:
            continue
        if fact["op"] == "exists" and fact.get("path") == paths.REASSIGN_PARTITIONS:
            checks.append(fact)
        elif not checks or fact["op"] not in ("connect", "setWatches"):
            break
    return checks[-1]["t"] if len(checks) > 1 else None


def _write_of(action: Fact) -> tuple[str, str] | None:
    """The operation by which a tool gives this command, and its path."""
    topic = str(action.get("topic"))
    match action.get("do"):
        case "create_topic":
            return "create", paths.topic(topic)
        case "add_partitions":
            return "setData", paths.topic(topic)
        case "delete_topic":
            return "create", paths.delete_topic(topic)
        case "reassign":
            return "create", paths.REASSIGN_PARTITIONS
        case "preferred_election":
            return "create", paths.PREFERRED_REPLICA_ELECTION
        case "delete_controller":
            return "delete", paths.CONTROLLER
    return None


def write_recording(recording: Recording, folder: Path | str) -> None:
    """Write the format of real recordings; without producers there is no `produce.jsonl`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[object]] = {
        "recording.jsonl": [recording.settings, *recording.events],
        "produce.jsonl": [msgspec.to_builtins(result) for result in recording.results],
    }
    for name, rows in tables.items():
        if rows:
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (folder / name).write_text(text, encoding="utf-8")


_RESULT = msgspec.json.Decoder(ProduceResult)
_FACT = msgspec.json.Decoder()


def _find(folder: Path, name: str) -> Path | None:
    return next((file for file in (folder / name, folder / f"{name}.gz") if file.exists()), None)


def _lines(file: Path, decode: Callable[[bytes], T]) -> list[T]:
    number = 0
    out: list[T] = []
    try:
        data = file.read_bytes()
        if file.suffix == ".gz":
            data = gzip.decompress(data)
        for line in data.splitlines():
            number += 1
            out.append(decode(line))
    except (msgspec.MsgspecError, OSError, EOFError, zlib.error) as error:
        raise BadRecording(file, number, str(error)) from error
    return out


def _fact(line: bytes) -> Fact:
    """Reject facts that the judge cannot use, here, where the line number is known."""
    fact = decode_untrusted(line, _FACT)
    if not isinstance(fact, dict) or not isinstance(fact.get("kind"), str):
        raise msgspec.ValidationError("not an object with a kind")
    kind = fact["kind"]
    if kind != "settings" and type(fact.get("t")) is not int:
        raise msgspec.ValidationError(f"{kind}: t is not a whole number of milliseconds")
    needed = _NEEDED.get(kind, {})
    if fact.get("do") == "produce":
        needed = needed | _NEEDED_OF_PRODUCE
    if bad := [k for k, of in needed.items() if k not in fact or not isinstance(fact[k], of)]:
        what = f"{kind}: {', '.join(bad)}: missing, or of the wrong type"
        raise msgspec.ValidationError(what)
    if kind.startswith("zookeeper"):
        operations = fact.get("ops", [fact])
        if not isinstance(operations, list):
            raise msgspec.ValidationError(f"{kind}: ops is not a list")
        for op in operations:
            if complaint := _complaint_about_operation(op, applied=kind == "zookeeper"):
                raise msgspec.ValidationError(f"{kind}: {complaint}")
    return fact


def _complaint_about_operation(op: object, *, applied: bool) -> str | None:
    """`applied`: by ZooKeeper. An operation that was only requested may lack a version or contain
    nonsense."""
    if not isinstance(op, dict) or not isinstance(op.get("op"), str):
        return "an operation lacks op"
    path, data = op.get("path") or "", op.get("data") or ""
    if not (isinstance(path, str) and isinstance(data, str)):
        return f"{op['op']}: path or data is not a string"
    if not applied or op["op"] not in ("create", "setData"):
        return None
    if op["op"] == "setData" and type(op.get("version")) is not int:
        return f"setData of {op.get('path')} lacks version"
    complaint = complaint_about_payload(path, data)
    return complaint and f"{path}: {complaint}"
