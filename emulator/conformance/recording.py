"""A recording in memory: settings, facts in time order, and the results of producers.

Owns the format of a recording's folder (`recording.jsonl`, `produce.jsonl`, each perhaps with
`.gz`), reading and writing. A fact stays the plain dict that its JSON line is: the format is
open, a version's log says more or less, and what is absent means something. What the judge asks
of facts again and again (transactions, producer results) is typed here. Facts are never changed
in place; whoever wants another recording makes one. This module must not know what is compared.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from emulator.conformance.znodes import complaint_about_payload

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


class BadRecording(Exception):
    """A folder that is no recording: which file, which line (0: the file itself), and why."""

    def __init__(self, file: Path, line: int, why: str) -> None:
        super().__init__(file, line, why)
        self.file, self.line, self.why = file, line, why

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


class ProduceResult(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What became of one record: `ok`, or the client library's name of the error.

    A field that is not listed here is not kept: nothing else of a result is compared.
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
    """One operation that ZooKeeper applied, a multi's one by one, and whose session sent it."""

    t: int
    broker: int | None
    op: str
    path: str
    data: str
    version: int | None

    @property
    def version_after(self) -> int:
        """The znode's version after a create or setData (the log has it for setData only)."""
        if self.op == "create":
            return 0
        assert self.version is not None, f"setData of {self.path} without a version"
        return self.version


@dataclass(frozen=True)
class Recording:
    """What one cluster did under one script; `name` is how whoever read it calls it."""

    settings: Fact
    events: list[Fact]
    results: list[ProduceResult] = field(default_factory=list)
    name: str = ""

    @cached_property
    def version(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.settings["kafka"].split("."))

    @cached_property
    def transactions(self) -> tuple[Transaction, ...]:
        return tuple(_transactions(self.of("zookeeper")))

    def of(self, *kinds: str) -> Iterator[Fact]:
        return (fact for fact in self.events if fact["kind"] in kinds)

    def fields(self, kind: str) -> frozenset[str]:
        """Every field that some fact of this kind has: what that version's log says at all."""
        return frozenset(key for fact in self.of(kind) for key in fact)


def partition_of(fact: Fact) -> str:
    return f"{fact.get('topic')}-{fact.get('partition')}"


def read_recording(folder: Path | str) -> Recording:
    """The recording in a folder; a plain file goes before its compressed twin."""
    file = _find(Path(folder), "recording.jsonl")
    if file is None:
        raise BadRecording(Path(folder), 0, "neither recording.jsonl nor recording.jsonl.gz here")
    settings, *events = _lines(file, _fact) or [{}]
    if settings.get("kind") != "settings":
        raise BadRecording(file, 1, "the first line is not the settings")
    _check_version(file, settings)
    produced = _find(Path(folder), "produce.jsonl")
    results = _lines(produced, _RESULT.decode) if produced else []
    return Recording(settings, events, results, str(folder))


def write_recording(recording: Recording, folder: Path | str) -> None:
    """Write the format of the real recordings; no producer, no `produce.jsonl`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "recording.jsonl", [recording.settings, *recording.events])
    if recording.results:
        _write(folder / "produce.jsonl", [msgspec.to_builtins(r) for r in recording.results])


_RESULT = msgspec.json.Decoder(ProduceResult)
_FACT = msgspec.json.Decoder()


def _find(folder: Path, name: str) -> Path | None:
    return next((file for file in (folder / name, folder / f"{name}.gz") if file.exists()), None)


def _lines(file: Path, decode: Callable[[bytes], T]) -> list[T]:
    number = 0
    out: list[T] = []
    try:
        for line in _bytes(file).splitlines():
            number += 1
            out.append(decode(line))
    except (msgspec.MsgspecError, OSError, EOFError, zlib.error) as error:
        raise BadRecording(file, number, str(error)) from error
    return out


def _bytes(file: Path) -> bytes:
    data = file.read_bytes()
    return gzip.decompress(data) if file.suffix == ".gz" else data


def _fact(line: bytes) -> Fact:
    fact = _FACT.decode(line)
    if complaint := _complaint(fact):
        raise msgspec.ValidationError(complaint)
    assert isinstance(fact, dict)
    return fact


def _complaint(fact: object) -> str | None:
    """Why the judge could not use this fact: said here, where the line is known."""
    if not isinstance(fact, dict) or not isinstance(fact.get("kind"), str):
        return "not an object with a kind"
    if fact["kind"] != "settings" and type(fact.get("t")) is not int:
        return f"{fact['kind']}: t is not a whole number of milliseconds"
    if bad := [key for key, of in _needed(fact).items() if not _has(fact, key, of)]:
        return f"{fact['kind']}: {', '.join(bad)}: missing, or not what it should be"
    return _complaint_about_operations(fact) if fact["kind"].startswith("zookeeper") else None


def _needed(fact: Fact) -> _Fields:
    of_kind = _NEEDED.get(fact["kind"], {})
    return of_kind | _NEEDED_OF_PRODUCE if fact.get("do") == "produce" else of_kind


def _has(fact: Fact, key: str, of: type) -> bool:
    return key in fact and isinstance(fact[key], of)


def _complaint_about_operations(fact: Fact) -> str | None:
    operations = fact.get("ops", [fact])
    if not isinstance(operations, list):
        return f"{fact['kind']}: ops is not a list"
    about = _complaint_about_applied if fact["kind"] == "zookeeper" else _complaint_about_operation
    return next((f"{fact['kind']}: {why}" for why in map(about, operations) if why), None)


def _complaint_about_operation(op: object) -> str | None:
    if not isinstance(op, dict) or not isinstance(op.get("op"), str):
        return "an operation lacks op"
    texts = isinstance(op.get("path") or "", str) and isinstance(op.get("data") or "", str)
    return None if texts else f"{op['op']}: path or data is no text"


def _complaint_about_applied(op: Fact) -> str | None:
    if why := _complaint_about_operation(op):
        return why
    if op["op"] == "setData" and type(op.get("version")) is not int:
        return f"setData of {op.get('path')} lacks version"
    if op["op"] not in ("create", "setData"):
        return None
    why = complaint_about_payload(op.get("path") or "", op.get("data") or "")
    return f"{op['path']}: {why}" if why else None


def _check_version(file: Path, settings: Fact) -> None:
    kafka = settings.get("kafka")
    if not isinstance(kafka, str) or not all(part.isdigit() for part in kafka.split(".")):
        raise BadRecording(file, 1, f"settings: kafka is not a version: {kafka!r}")


def _transactions(facts: Iterable[Fact]) -> Iterator[Transaction]:
    for fact in facts:
        for op in fact.get("ops", [fact]):
            path, data = op.get("path") or "", op.get("data") or ""
            broker, version = fact.get("broker"), op.get("version")
            yield Transaction(fact["t"], broker, op["op"], path, data, version)


def _write(file: Path, rows: Iterable[object]) -> None:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
