"""A ZooKeeper server behind a dead link, as one that connects to it sees it."""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from pathlib import Path


class UnresponsiveServer:
    """A port that answers no SYN: its queue of connections is full and never accepted."""

    def __init__(self, host: str, port: int) -> None:
        self._port = port
        self._sockets = [socket.create_server((host, port), backlog=0)]
        while True:
            client = socket.socket()
            self._sockets.append(client)
            client.setblocking(False)
            client.connect_ex((host, port))
            if not select.select([], [client], [], 0.1)[1]:
                return

    def has_connecting(self, pid: int) -> bool:
        """Whether a process waits for its SYN to be answered (SYN_SENT in /proc/net/tcp)."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {
            row[9] for row in rows if row[2].endswith(f":{self._port:04X}") and row[3] == "02"
        }
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                if descriptor.readlink().name.strip("socket:[]") in inodes:
                    return True
        return False

    def __enter__(self) -> UnresponsiveServer:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            one.close()
