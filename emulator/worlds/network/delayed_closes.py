"""Sockets whose input was invalid, closed in turn and not faster than one per INTERVAL_S.

Kafka closes such a connection at once. It delays the close only after a failed authentication
(KIP-306, connection.failed.authentication.delay.ms), which slows a client that tries again and
again. Here invalid requests are slowed in the same way: each takes 80 us of the one interpreter
that serves good clients too. Uses no thread: the sockets' loop asks how long it may wait.
"""

from __future__ import annotations

import socket
from collections import deque

INTERVAL_S = 0.01
MAX_PENDING = 64
"""More than that are not kept: the oldest is closed at once, so that descriptors do not run out."""


class DelayedCloses:
    """The sockets that are still to be closed, the oldest first. Times are monotonic, in s."""

    def __init__(self) -> None:
        self._pending: deque[socket.socket] = deque()
        self._next_at_s = 0.0

    def add(self, end: socket.socket, now_s: float) -> None:
        """Close it: at once, if none was closed in the last INTERVAL_S."""
        self._pending.append(end)
        if len(self._pending) > MAX_PENDING:
            self._pending.popleft().close()
        self.close_due(now_s)

    def close_due(self, now_s: float) -> None:
        """Close the oldest if it is time."""
        if self._pending and now_s >= self._next_at_s:
            self._pending.popleft().close()
            # Counted from now: closes that are late are not made up for in a burst.
            self._next_at_s = now_s + INTERVAL_S

    def wait_s(self, now_s: float) -> float | None:
        """How long until the next close; None if none is pending."""
        return max(0.0, self._next_at_s - now_s) if self._pending else None

    def close_all(self) -> bool:
        """Close all now; returns whether there were any."""
        had_any = bool(self._pending)
        while self._pending:
            self._pending.popleft().close()
        return had_any
