"""Expires another client's session, as a server does after the session timeout.

A real server has no request for that. But a second connection with the session's id and password
takes the session over, whereupon the server closes the first connection, and the second one can
close the session: one closeSession in the server's log, ephemeral znodes deleted, watches fired.
The session's client is not notified: it finds its connection closed, reconnects, and learns that
the session has expired. Both packets are sent at once without waiting: a paused server reads them
when it resumes. Owns these connections until it is closed; knows no kazoo.
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
    """The sessions of one service that are being expired."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._under_way: list[socket.socket] = []

    def expire(self, session_id: int, password: bytes, timeout_ms: int) -> None:
        """Expire a session. Nothing happens if no server listens."""
        self._forget_closed()
        for server in self._address.servers:
            try:
                connection = socket.create_connection(server, _PATIENCE_S)
            except OSError as error:
                _log.info("no session can be ended at %s:%d: %s", *server, error)
                continue
            # Send both at once: a paused server reads them when it resumes, and we need not wait
            # until then for the first response.
            request = jute.ConnectRequest(0, timeout_ms, session_id, password)
            connection.sendall(jute.frame(jute.encode_connect(request)))
            connection.sendall(jute.frame(jute.encode_close(1)))
            self._under_way.append(connection)
            return

    def settle(self, timeout_s: float) -> bool:
        """Wait until the server has processed all of them; False after the timeout."""
        deadline = time.monotonic() + timeout_s
        while self._under_way:
            select.select(self._under_way, [], [], max(0.0, deadline - time.monotonic()))
            self._forget_closed()
            if time.monotonic() >= deadline:
                break
        return not self._under_way

    def close(self) -> None:
        """Close all connections; unread packets may be lost."""
        for connection in self._under_way:
            connection.close()
        self._under_way.clear()

    def _forget_closed(self) -> None:
        """Forget the connections that the server has closed, which is its response to
        closeSession."""
        for connection in list(self._under_way):
            try:
                while select.select([connection], [], [], 0)[0]:
                    if not connection.recv(4096):
                        raise ConnectionResetError  # an orderly close counts like a reset
            except OSError:
                connection.close()
                self._under_way.remove(connection)
