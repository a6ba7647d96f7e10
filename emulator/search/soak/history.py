"""A history: the records that clients sent, that were acknowledged, and that were read; one JSON
line each.

Each client writes its own file, because clients are other vendors' programs; `merged_history`
merges them in order of time. Times are microseconds of this machine's monotonic clock since the
cluster was up. Nothing here knows a broker.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

OperationKind = Literal["send", "acknowledged", "failed", "read", "end", "epoch", "fatal"]


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. `record` is a record's value, `client.number`, with numbers in the order of
    sending. `failed`: the client gave up; the record may be in the log or not. `read`: `records`
    are at consecutive offsets from `offset` on, read in this `scan` of the client; offsets only
    grow within a scan. `end`: the scan has read everything from the log's start (`offset`) up to
    `until`. `epoch`: the client continues in the partition with another producer epoch and resends
    what was in flight, which brokers cannot recognise. `fatal`: the client was replaced by a new
    one."""

    at_us: int
    client: str
    op: OperationKind
    partition: str = ""
    record: str = ""
    offset: int = -1
    records: tuple[str, ...] = ()
    scan: int = 0
    until: int = -1
    error: str = ""


def read_history(path: Path) -> Iterator[Operation]:
    """All complete lines; a killed client may leave an incomplete one."""
    decode = msgspec.json.Decoder(Operation).decode
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield decode(line)


def merged_history(parts: Iterable[Path], path: Path) -> None:
    """Merge several files into one; the lines of each keep their order."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        histories = [read_history(part) for part in parts]
        for operation in heapq.merge(*histories, key=lambda one: one.at_us):
            file.write(encode(operation) + b"\n")
