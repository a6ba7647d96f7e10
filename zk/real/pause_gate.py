"""The gate between one process's ZooKeeper clients and the network.

Owns the two ways to stop a live process's link: paused and cut. Knows neither kazoo nor sockets,
only a `Client` whose thread waits here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Client(Protocol):
    """One connection's thread, as seen by the gate."""

    @property
    def abandoned(self) -> bool:
        """Whether its process is dead, so that it must not wait any more."""
        ...

    def wake(self) -> None:
        """Let it check its state again. May be called from any thread."""
        ...


class Gate:
    """Between one process's ZooKeeper clients and the network; any thread may operate it.

    Paused is like SIGSTOP: no client thread runs, sockets stay open. Cut is like a dead link:
    clients run and time out, no byte passes. Both are exact: when the call returns, nothing passes
    any more. A client's thread owns the lock whenever it is not waiting, so its callees
    (`Lane.post`) must not wait for a lock that a caller of the gate holds.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition(threading.Lock())
        self._paused = False
        self.is_cut = False
        self._clients: list[Client] = []

    def pause(self) -> None:
        with self._lock:
            self._paused = True

    def resume(self) -> None:
        with self._lock:
            self._paused = False
            self._lock.notify_all()

    def cut(self) -> None:
        with self._lock:
            self.is_cut = True

    def heal(self) -> None:
        with self._lock:
            self.is_cut = False
            self._lock.notify_all()
            clients = list(self._clients)
        for client in clients:
            client.wake()

    def enter(self, client: Client) -> bool:
        """Take the lock, waiting while paused. True if it had to wait for that."""
        self._lock.acquire()
        waited = self._paused
        while self._paused and not client.abandoned:
            self._lock.wait()
        return waited

    def enter_if_open(self) -> bool:
        """Take the lock if it is free, and the gate neither paused nor cut."""
        if not self._lock.acquire(blocking=False):
            return False
        if self._paused or self.is_cut:
            self._lock.release()
            return False
        return True

    def leave(self) -> None:
        self._lock.release()

    def wait_for_link(self, client: Client, timeout_s: float) -> bool:
        """With the lock: wait until the link is whole; False after the timeout."""
        whole = self._lock.wait_for(
            lambda: client.abandoned or not (self.is_cut or self._paused), timeout_s
        )
        while self._paused and not client.abandoned:
            self._lock.wait()
        return whole and not self.is_cut

    def end(self, client: Client, action: Callable[[], None]) -> None:
        """Run `action` while the client's thread is stopped, then let that thread continue."""
        with self._lock:
            action()
            self._lock.notify_all()
        client.wake()

    def join(self, client: Client) -> None:
        with self._lock:
            self._clients.append(client)

    def part(self, client: Client) -> None:
        with self._lock:
            self._clients.remove(client)
