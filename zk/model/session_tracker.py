"""When the server's sessions run out: on its own clock, a tick at a time.

Owns the sessions' deadlines and when they are looked at; knows no connection and no tree. Source:
ExpiryQueue.java, SessionTrackerImpl.java 3.5.9.
"""

from __future__ import annotations

from collections.abc import Callable

from zk.model.connection import ServerSession
from zk.wire import Lane, labelled

NEVER_US = 1 << 62


class SessionTracker:
    """All sessions of one server."""

    def __init__(
        self,
        lane: Lane,
        tick_time_ms: int,
        tick_phase_ms: int,
        is_open: Callable[[ServerSession], bool],
        on_expired: Callable[[ServerSession], None],
    ) -> None:
        """`lane` is the thread that looks; `tick_phase_ms` shifts its ticks."""
        self._lane, self._now_us = lane, lane.now_us
        self._tick_ms, self._phase_ms = tick_time_ms, tick_phase_ms
        self._is_open, self._on_expired = is_open, on_expired
        self._buckets: dict[int, list[ServerSession]] = {}
        self.next_tick_us = NEVER_US

    def touch(self, session: ServerSession) -> None:
        """ExpiryQueue.roundToNextInterval: always at least the next tick, so a session lives up to
        one tick longer than its time-out."""
        tick_ms, phase_ms = self._tick_ms, self._phase_ms
        end_ms = self._now_us() // 1000 + session.timeout_ms + phase_ms
        session.deadline_ms = (end_ms // tick_ms + 1) * tick_ms - phase_ms

    def track(self, session: ServerSession) -> None:
        """Look at the session again at its deadline (a touch meanwhile only moves the deadline)."""
        # One bucket and one timer per tick, however many sessions and pings there are.
        bucket_us = session.deadline_ms * 1000
        if bucket_us not in self._buckets:
            self._buckets[bucket_us] = []
            self.next_tick_us = min(self.next_tick_us, bucket_us)
            self._lane.call_later(max(bucket_us - self._now_us(), 0), self.on_tick)
        self._buckets[bucket_us].append(session)

    @labelled("on_tick")
    def on_tick(self) -> None:
        """Sessions of one tick go together. After a stall all ticks that were missed come at once,
        in a race with the threads that read packets: of 72 sessions that had sent or reconnected
        meanwhile a real 3.9.3 server kept none on a quiet machine, of 24 on a busy one 8."""
        now_us = self._now_us()
        while self.next_tick_us <= now_us:
            due = self._buckets.pop(self.next_tick_us)
            self.next_tick_us = min(self._buckets, default=NEVER_US)
            for session in due:
                # Closed by its client, expired by a fault, or forgotten.
                if not self._is_open(session):
                    continue
                if session.deadline_ms * 1000 > now_us:
                    # Touched since it was put into this bucket: it goes to that of its deadline.
                    self.track(session)
                else:
                    self._on_expired(session)

    def clear(self) -> None:
        """The server's process ends."""
        self._buckets.clear()
        self.next_tick_us = NEVER_US
