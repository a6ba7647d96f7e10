"""Brokers' ZooKeeper sessions that expired, as opposed to those that were closed.

ZooKeeper logs the same `closeSession` for both. An orderly one has a request, which is its cause in
the trace. A broker that never reconnects does not learn of the expiry, so only the log shows it.
"""

from __future__ import annotations

from emulator.trace import events as e

_CLOSE = "closeSession"


class Sessions:
    """The brokers whose sessions expired: those closed without a request."""

    def __init__(self) -> None:
        self.expired: list[int] = []
        self._close_requests: set[int] = set()

    def on_zk_request(self, event: e.ZkRequest) -> None:
        if event.op == _CLOSE:
            self._close_requests.add(event.seq)

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        if event.op == _CLOSE and event.broker and event.cause not in self._close_requests:
            self.expired.append(event.broker)
