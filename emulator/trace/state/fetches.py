"""Fetcher threads: how often each asks, and how far behind the leader they are.

Owns MaxLag and MinFetchRate as Kafka's ReplicaFetcherManager has them: a follower's lag is measured
when it has appended, against the leader's high watermark (AbstractFetcherThread.scala@2.6.3
processFetchRequest); so a follower that stands still keeps its last value.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.state.logs import Logs
from emulator.trace.values import TopicPartition


class Fetcher(msgspec.Struct):
    """One fetcher thread's requests."""

    first_us: int
    last_us: int
    requests: int = 0
    gap_us_max: int = 0


class Fetches:
    """Fetcher threads by broker and thread name; lags in records."""

    def __init__(self, logs: Logs) -> None:
        self.logs = logs
        self.fetchers: dict[tuple[int, str], Fetcher] = {}
        self.lag: dict[tuple[int, TopicPartition], int] = {}
        self.lag_max = 0

    def on_fetch_sent(self, event: e.FetchSent) -> None:
        key = event.broker, event.thread
        fetcher = self.fetchers.get(key)
        if fetcher is None:
            fetcher = self.fetchers[key] = Fetcher(event.t, event.t)
        fetcher.requests += 1
        fetcher.gap_us_max = max(fetcher.gap_us_max, event.t - fetcher.last_us)
        fetcher.last_us = event.t

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if event.role == "leader":
            return
        leader = self.logs.of(event.partition, event.broker).leader
        hw = self.logs.of(event.partition, leader).hw
        lag = self.lag[event.broker, event.partition] = max(0, hw - event.leo)
        self.lag_max = max(self.lag_max, lag)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self.lag.pop((event.broker, event.partition), None)

    def min_rate(self, end_us: int) -> float:
        """Requests per second of the slowest fetcher thread, over its time so far."""
        rates = [
            fetcher.requests * 1_000_000 / (end_us - fetcher.first_us)
            for fetcher in self.fetchers.values()
            if end_us > fetcher.first_us
        ]
        return min(rates, default=0.0)
