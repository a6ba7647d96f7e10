"""What a trace implies while it grows: read event by event, once, for expectations and metrics
alike.

`Observed` is a listener on the sink. Its parts each own one question (who is in the ISR, what do
metadata caches show, what do logs hold, which records were acknowledged ...); everything that is
counted, judged or shown of a run in numbers comes from them, so it agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emulator.scenario.observed.clock import Clock
from emulator.scenario.observed.counts import Counts
from emulator.scenario.observed.fetches import Fetches
from emulator.scenario.observed.isr_times import IsrTimes
from emulator.scenario.observed.metadata import Metadata
from emulator.scenario.observed.records import Records
from emulator.scenario.observed.sessions import Sessions
from emulator.scenario.observed.topics import Topics
from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.logs import Logs
from emulator.trace.partitions import Partitions


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
