"""Point 6: the ZooKeeper requests of each broker, told apart by the thread that sent them.

Owns which paths are compared, which Kafka thread a request gives away, and that requests of one
kind in a row are one pipelined batch without an order of its own. It must not know what other
facts a recording holds.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from emulator.conformance.recording import Fact, Recording
from emulator.conformance.znodes import BROKER_IDS, NOTIFICATIONS, partition_of_state

_COMPARED = (
    "/controller",
    "/brokers",
    "/isr_change_notification",
    "/admin",
    "/log_dir_event_notification",
)
_ADMIN_CREATES = ("/brokers/topics/", "/admin/delete_topics/")
_LISTS = ("/brokers/topics", "/brokers/ids")
_TOPIC = re.compile(r"^/(brokers|config)/topics/[^/]+")
_NUMBER = re.compile(r"\d+")

E = TypeVar("E")


class Operation(NamedTuple):
    """One part of a multi as it was sent."""

    op: str
    path: str | None
    version: int | None
    flags: str | None


class Request(NamedTuple):
    op: str
    path: str | None
    watch: bool | None
    version: int | None
    flags: str | None
    ops: tuple[Operation, ...]


def sent_requests(
    recording: Recording, from_ms: int, threads: Threads
) -> Iterator[tuple[int, str, Request]]:
    """Each compared request: when it passed, its lane (broker and thread), and itself."""
    for fact in recording.of("zookeeper_request"):
        if fact["op"] == "connect":
            threads.connected(fact["broker"])
        path = _path(fact)
        if _is_compared(fact, path) and fact["t"] >= from_ms:
            lane = f"broker {fact['broker']} {threads.sender(fact, path)}"
            yield fact["t"], lane, _request(fact)


def _path(fact: Fact) -> str:
    """The path of a request; a multi's last one, for its first only checks the epoch."""
    path: str = fact.get("path") or (fact.get("ops") or [{}])[-1].get("path", "")
    return path


def _is_compared(fact: Fact, path: str) -> bool:
    return path.startswith(_COMPARED) and "/__" not in path and fact["op"] != "sync"


def _request(fact: Fact) -> Request:
    get = fact.get
    ops = tuple(_operation(op) for op in get("ops", ()))
    return Request(fact["op"], get("path"), get("watch"), get("version"), get("flags"), ops)


def _operation(op: dict[str, Any]) -> Operation:
    return Operation(op["op"], op.get("path"), op.get("version"), op.get("flags"))


class Threads:
    """Which thread sent a request, as far as the requests before it on its connection tell."""

    def __init__(self) -> None:
        self._registered: set[int] = set()
        self._just_written: set[tuple[int, str]] = set()

    def connected(self, broker: int) -> None:
        self._registered.discard(broker)

    def sender(self, fact: Fact, path: str) -> str:
        broker, op = fact["broker"], fact["op"]
        if self._is_leaders(broker, op, path):
            return self._leader(broker, op, path)
        self._just_written.discard((broker, path))
        if op == "multi" and path.startswith(BROKER_IDS):
            self._registered.add(broker)
            return "registration"
        return self._other_sender(fact, path)

    def _is_leaders(self, broker: int, op: str, path: str) -> bool:
        """A leader writes a state, and reads it back where the write met another version."""
        read_back = op == "getData" and (broker, path) in self._just_written
        return (op == "setData" or read_back) and partition_of_state(path) is not None

    def _leader(self, broker: int, op: str, path: str) -> str:
        note = self._just_written.add if op == "setData" else self._just_written.discard
        note((broker, path))
        return f"leader of {partition_of_state(path)}"

    def _other_sender(self, fact: Fact, path: str) -> str:
        if fact["op"] == "create" and path.startswith(NOTIFICATIONS):
            return "propagation"
        if _is_admins(fact["op"], path):
            return "admin"
        return "start-up" if self._is_start_up(fact, path) else "controller"

    def _is_start_up(self, fact: Fact, path: str) -> bool:
        lists_once = path in _LISTS and not fact.get("watch")
        unregistered = fact["broker"] not in self._registered
        reads_ids = path.startswith(BROKER_IDS) and unregistered
        return fact["op"] == "create" or lists_once or reads_ids


def _is_admins(op: str, path: str) -> bool:
    if op == "create":
        return path.startswith(_ADMIN_CREATES)
    return op == "exists" and path.startswith("/brokers/topics/")


def batches_sorted(lane: list[tuple[int, E]]) -> list[tuple[int, E]]:
    """Sort each batch: requests of one kind in a row were pipelined, by a map's order."""
    batches = itertools.groupby(lane, lambda timed: _kind(timed[1]))
    return [
        timed for _, batch in batches for timed in sorted(batch, key=lambda timed: repr(timed[1]))
    ]


def _kind(request: object) -> tuple[object, ...]:
    assert isinstance(request, Request)
    ops = tuple((op.op, _pattern(op.path)) for op in request.ops)
    return request.op, _pattern(request.path), request.watch, ops


@lru_cache(maxsize=4096)
def _pattern(path: str | None) -> str:
    """A path with its topic and its numbers left open."""
    return _NUMBER.sub("N", _TOPIC.sub(r"/\1/topics/T", path or ""))
