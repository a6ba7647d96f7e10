"""What a trace implies while it grows: read event by event, once, for expectations and metrics
alike.

`Observed` is a listener on the sink. Its parts each own one question (who is in the ISR, what do
metadata caches show, what do logs hold, which records were acknowledged ...); everything that is
counted, judged or shown of a run in numbers comes from them, so it agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.state.clock import Clock
from emulator.trace.state.counts import Counts
from emulator.trace.state.fetches import Fetches
from emulator.trace.state.isr_times import IsrTimes
from emulator.trace.state.logs import Logs
from emulator.trace.state.metadata import Metadata
from emulator.trace.state.partitions import Partitions
from emulator.trace.state.records import Records
from emulator.trace.state.sessions import Sessions
from emulator.trace.state.topics import Topics


class Observed:
    """All parts of one run. `settings` are the cluster's, `brokers` those that boot."""

    def __init__(self, brokers: Iterable[int] = (), settings: Mapping[str, str] | None = None):
        self.clock = Clock(frozenset(brokers))
        self.partitions = Partitions()
        self.isr_times = IsrTimes(self.partitions, settings or {})
        self.metadata = Metadata(self.partitions)
        self.logs = Logs()
        self.records = Records(self.logs, self.partitions)
        self.fetches = Fetches(self.logs)
        self.topics = Topics()
        self.sessions = Sessions()
        self.counts = Counts(self.partitions)
        parts = (
            self.clock,
            self.partitions,
            self.isr_times,
            self.metadata,
            self.logs,
            self.records,
            self.fetches,
            self.topics,
            self.sessions,
            self.counts,
        )
        self._dispatch = Dispatch(parts)

    def __call__(self, event: AnyEvent) -> None:
        self.clock.now_us = event.t
        self.counts.events += 1
        self._dispatch(event)
