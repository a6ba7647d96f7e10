"""Sends payloads of a file to a broker, a connection each: as many as each line of standard input
says. For each line it prints how many were not answered.

    python flood.py PORT FILE

A process of its own, and an idle one for the scheduler: who floods a broker has a machine of his
own, and what he computes there takes nothing from brokers and clients. Needs the standard library
alone.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

PATIENCE_S = 30


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def frames(data: bytes) -> Iterator[bytes]:
    """Each with its length in front, as in the file."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        yield data[at : at + 4 + length]
        at += 4 + length


def is_closed(port: int, frame: bytes) -> bool:
    """Whether the broker closes the connection, and says nothing."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as stranger:
        try:
            stranger.sendall(frame)
            return not stranger.recv(1)
        except ConnectionError:
            return True


if __name__ == "__main__":
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    port, rest = int(sys.argv[1]), frames(Path(sys.argv[2]).read_bytes())
    for line in sys.stdin:
        print(sum(is_closed(port, one) for one in islice(rest, int(line))), flush=True)
