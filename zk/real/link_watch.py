"""What the thread of one connection waits for: bytes on its link, and to be woken.

Owns one epoll and what it is registered for; the sockets are others'. Knows no ZooKeeper.
"""

from __future__ import annotations

import select
import socket

CHUNK = 64 * 1024
"""Bytes that are read at once."""


class LinkWatch:
    """What a connection's thread waits for, as long as its link is there: the link, and a wake-up.
    An epoll, not poll(2), which looks at its sockets again after a stop."""

    def __init__(self, link: socket.socket, waker: socket.socket) -> None:
        self._link, self._waker, self._events = link, waker, 0
        self._epoll = select.epoll()
        self._epoll.register(waker, select.EPOLLIN)

    def expect(self, events: int) -> None:
        """Wait for these of the link's events; 0: not for the link, not for its end either."""
        if events == self._events:
            return
        if not events:
            self._epoll.unregister(self._link)
        elif not self._events:
            self._epoll.register(self._link, events)
        else:
            self._epoll.modify(self._link, events)
        self._events = events

    def poll(self, timeout_s: float) -> int:
        """The link's events; 0 when the time is over or somebody woke us."""
        ready = dict(self._epoll.poll(timeout_s))
        if self._waker.fileno() in ready:
            self._waker.recv(CHUNK)
        return ready.get(self._link.fileno(), 0)

    def close(self) -> None:
        self._epoll.close()
