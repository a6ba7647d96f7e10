"""The criterion "ZooKeeper requests": the requests of each broker, by the thread that sent them.

Owns which paths are compared, how the sending thread is inferred from a request, and that
consecutive requests of one kind are a pipelined batch in arbitrary order. It must not know what
other facts a recording holds.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

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
    """One operation of a multi as it was sent."""

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
    """Each compared request with its time and its lane (broker and thread)."""
    for fact in recording.of("zookeeper_request"):
        broker, op = fact["broker"], fact["op"]
        if op == "connect":
            threads.connected(broker)
        ops = fact.get("ops") or []
        # A multi is classified by its last path, because its first operation only checks the epoch.
        path: str = fact.get("path") or (ops or [{}])[-1].get("path", "")
        if not path.startswith(_COMPARED) or "/__" in path or op == "sync" or fact["t"] < from_ms:
            continue
        request = Request(
            op,
            fact.get("path"),
            fact.get("watch"),
            fact.get("version"),
            fact.get("flags"),
            tuple(Operation(o["op"], o.get("path"), o.get("version"), o.get("flags")) for o in ops),
        )
        yield fact["t"], f"broker {broker} {threads.sender(fact, path)}", request


class Threads:
    """Infers the thread that sent a request from the earlier requests on its connection."""

    def __init__(self) -> None:
        self._registered: set[int] = set()
        self._just_written: set[tuple[int, str]] = set()

    def connected(self, broker: int) -> None:
        self._registered.discard(broker)

    def sender(self, fact: Fact, path: str) -> str:
        broker, op = fact["broker"], fact["op"]
        # A leader reads a state back if its write failed because of the version.
        read_back = op == "getData" and (broker, path) in self._just_written
        self._just_written.discard((broker, path))
        state = partition_of_state(path)
        if state is not None and (op == "setData" or read_back):
            if op == "setData":
                self._just_written.add((broker, path))
            return f"leader of {state}"
        if op == "multi" and path.startswith(BROKER_IDS):
            self._registered.add(broker)
            return "registration"
        if op == "create" and path.startswith(NOTIFICATIONS):
            return "propagation"
        if op == "create" and path.startswith(_ADMIN_CREATES):
            return "admin"
        if op == "exists" and path.startswith("/brokers/topics/"):
            return "admin"
        lists_once = path in _LISTS and not fact.get("watch")
        reads_ids_first = path.startswith(BROKER_IDS) and broker not in self._registered
        is_start_up = op == "create" or lists_once or reads_ids_first
        return "start-up" if is_start_up else "controller"


def batches_sorted(lane: list[tuple[int, E]]) -> list[tuple[int, E]]:
    """Sort each batch: consecutive requests of one kind are pipelined in the arbitrary order of a
    map."""

    def kind(timed: tuple[int, E]) -> tuple[object, ...]:
        request = timed[1]
        assert isinstance(request, Request)
        ops = tuple((op.op, _pattern(op.path)) for op in request.ops)
        return request.op, _pattern(request.path), request.watch, ops

    batches = itertools.groupby(lane, kind)
    return [
        timed for _, batch in batches for timed in sorted(batch, key=lambda timed: repr(timed[1]))
    ]


@lru_cache(maxsize=4096)
def _pattern(path: str | None) -> str:
    """The path with placeholders for its topic and numbers."""
    return _NUMBER.sub("N", _TOPIC.sub(r"/\1/topics/T", path or ""))
