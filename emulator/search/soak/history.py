"""A history: what clients sent, what was acknowledged to them, what they read; one JSON line each.

Clients write their own file, as they are programs of other houses; `merged_history` makes one file
of them, in the order of time. Times are microseconds of this machine's monotonic clock since the
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
    """One line. `record` is the value of a record, `client.number`: numbers grow in the order in
    which a client sends. `failed`: the client gave up, and the record may be in the log or not.
    `read`: `records` are at consecutive offsets from `offset` on, read in this `scan` of the
    client: in one scan offsets only grow. `end`: the scan has read everything from the log's start
    (`offset`) up to `until`. `epoch`: the client goes on in the partition under another producer
    epoch; what it had under way it sends again, and no broker can know that. `fatal`: the client
    began again as a new one."""

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
    """All lines that are whole: a client that was killed may leave one that is not."""
    decode = msgspec.json.Decoder(Operation).decode
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield decode(line)


def merged_history(parts: Iterable[Path], path: Path) -> None:
    """Write one file of several; the lines of each stay in their order."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        histories = [read_history(part) for part in parts]
        for operation in heapq.merge(*histories, key=lambda one: one.at_us):
            file.write(encode(operation) + b"\n")
