"""Ends a session that somebody else has, as a server does when its time has run out.

A real server takes no order for that. But a second connection that names the session's id and
password takes the session over, at which the server closes the first, and may then close it: one
closeSession in the server's log, ephemerals gone, watches fired. The session's client is not
notified: it finds its connection closed, reconnects, and learns that the session has expired.
Both packets are sent at once without waiting: a paused server reads them when it resumes. Owns
these connections until it is closed; knows no kazoo.
"""

from __future__ import annotations

import logging
import select
import socket
import time

from zk.real import jute
from zk.real.server import Address

_PATIENCE_S = 5.0
_log = logging.getLogger("zk.real.expiry")


class Expiries:
    """Sessions of one service that are being ended."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._under_way: list[socket.socket] = []

    def expire(self, session_id: int, password: bytes, timeout_ms: int) -> None:
        """Have the service end it. Where no server listens nothing happens."""
        self._let_go()
        for server in self._address.servers:
            try:
                connection = socket.create_connection(server, _PATIENCE_S)
            except OSError as error:
                _log.info("no session can be ended at %s:%d: %s", *server, error)
                continue
            # Both at once: a paused server reads them when it resumes, and we need not wait for the
            # first answer until then.
            request = jute.ConnectRequest(0, timeout_ms, session_id, password)
            connection.sendall(jute.frame(jute.encode_connect(request)))
            connection.sendall(jute.frame(jute.encode_close(1)))
            self._under_way.append(connection)
            return

    def settle(self, timeout_s: float) -> bool:
        """Wait until the server has done all of it; False when it has not in time."""
        deadline = time.monotonic() + timeout_s
        while self._under_way:
            select.select(self._under_way, [], [], max(0.0, deadline - time.monotonic()))
            self._let_go()
            if time.monotonic() >= deadline:
                break
        return not self._under_way

    def close(self) -> None:
        """What has not been read yet may never be."""
        for connection in self._under_way:
            connection.close()
        self._under_way.clear()

    def _let_go(self) -> None:
        """Of the connections that the server has closed: that is its answer to closeSession."""
        for connection in list(self._under_way):
            try:
                while select.select([connection], [], [], 0)[0]:
                    if not connection.recv(4096):
                        raise ConnectionResetError  # an orderly end is as good as a reset
            except OSError:
                connection.close()
                self._under_way.remove(connection)
