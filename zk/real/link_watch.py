"""The events for which a connection's thread waits: bytes on its link, and wake-ups.

Owns an epoll and its registrations, but not the sockets. Knows no ZooKeeper.
"""

from __future__ import annotations

import select
import socket

CHUNK = 64 * 1024
"""The maximum number of bytes per read."""


class LinkWatch:
    """Waits for a connection's link and for wake-ups. Uses an epoll, because poll(2) checks its
    sockets again after a SIGSTOP."""

    def __init__(self, link: socket.socket, waker: socket.socket) -> None:
        self._link, self._waker, self._events = link, waker, 0
        self._epoll = select.epoll()
        self._epoll.register(waker, select.EPOLLIN)

    def expect(self, events: int) -> None:
        """Wait for these events of the link; 0: ignore the link, even its end."""
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
        """The link's events; 0 after the timeout or a wake-up."""
        ready = dict(self._epoll.poll(timeout_s))
        if self._waker.fileno() in ready:
            self._waker.recv(CHUNK)
        return ready.get(self._link.fileno(), 0)

    def close(self) -> None:
        self._epoll.close()
