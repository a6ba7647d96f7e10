"""Fetcher threads: their partitions, request rates and lags.

Computes MaxLag and MinFetchRate like Kafka's ReplicaFetcherManager. A follower's lag is measured
after each append, against the leader's high watermark (AbstractFetcherThread.scala@2.6.3
processFetchRequest), so a paused follower keeps its last value.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from emulator.trace import events as e
from emulator.trace.state.logs import Logs
from emulator.trace.state.processes import Processes
from emulator.trace.state.replicas import Replicas
from emulator.trace.values import TopicPartition

_THREAD = re.compile(r"ReplicaFetcherThread-(\d+)-(\d+)")

ThreadKey = tuple[int, int]
"""The leader and the fetcher id, as in Kafka's thread name."""


@cache  # Needed for every Fetch of a run; a cluster has a few dozen such names.
def thread_key(name: str) -> ThreadKey | None:
    """None: it is no fetcher thread."""
    match = _THREAD.fullmatch(name)
    return None if match is None else (int(match[2]), int(match[1]))


class Delay(msgspec.Struct):
    """Why a partition is left out of fetches, and until when."""

    until_us: int
    reason: str


class FetcherThread(msgspec.Struct):
    """A running thread; `sent_us` is when it last sent a Fetch (None: never). `offsets`: the last
    requested offset of each partition, in the order in which partitions were added (-1: none
    yet).
    """

    sent_us: int | None = None
    session_epoch: int = -1
    offsets: dict[TopicPartition, int] = {}
    delays: dict[TopicPartition, Delay] = {}


class Fetcher(msgspec.Struct):
    """The requests of one fetcher thread, including those of the broker's former processes."""

    first_us: int
    last_us: int
    requests: int = 0
    gap_us_max: int = 0


class Fetches:
    """Fetcher threads by broker and thread name; lags in records."""

    def __init__(self, logs: Logs, replicas: Replicas, processes: Processes) -> None:
        """`replicas` must receive each event before this does."""
        self.logs, self._replicas = logs, replicas
        self.threads: dict[int, dict[ThreadKey, FetcherThread]] = {}
        self._stopped: dict[tuple[int, TopicPartition], dict[ThreadKey, int]] = {}
        processes.listen_to_losses(lambda event: self.threads.pop(event.broker, None))
        self.fetchers: dict[tuple[int, str], Fetcher] = {}
        self._followed: dict[int, list[tuple[TopicPartition, list[tuple[int, int]]]]] = {}
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
        if (thread := self._thread(event)) is not None:
            thread.sent_us, thread.session_epoch = event.t, event.session_epoch
            thread.offsets.update(event.offsets)
            for name, _ in event.offsets if thread.delays else ():
                thread.delays.pop(name, None)
        for name, fetched in self._followed.get(event.broker, ()):
            fetched += [(event.t, offset) for of, offset in event.offsets if of == name]

    def follow(self, broker: int, name: TopicPartition) -> list[tuple[int, int]]:
        """The time and offset of every later fetch of the partition by the broker. Must be called
        before the trace is read: fetches are most of a trace, and keeping all of them would take as
        much memory as the trace."""
        fetched: list[tuple[int, int]] = []
        self._followed.setdefault(broker, []).append((name, fetched))
        return fetched

    def on_partition_delayed(self, event: e.PartitionDelayed) -> None:
        if (thread := self._thread(event)) is not None:
            thread.offsets.setdefault(event.partition, -1)
            thread.delays[event.partition] = Delay(event.t + event.delay_ms * 1000, event.reason)

    def on_partition_marked_failed(self, event: e.PartitionMarkedFailed) -> None:
        if (thread := self._thread(event)) is not None:
            thread.offsets.pop(event.partition, None)
            thread.delays.pop(event.partition, None)

    def _thread(
        self, event: e.FetchSent | e.PartitionDelayed | e.PartitionMarkedFailed
    ) -> FetcherThread | None:
        """The fetcher thread of this event; None if a client sent the fetch."""
        key = thread_key(event.thread)
        if key is None:
            return None
        threads = self.threads.setdefault(event.broker, {})
        thread = threads.get(key)
        if thread is None:
            thread = threads[key] = FetcherThread()
        return thread

    def on_fetcher_started(self, event: e.FetcherStarted) -> None:
        key = event.leader, event.fetcher_id
        self.threads.setdefault(event.broker, {})[key] = FetcherThread()

    def on_fetcher_stopped(self, event: e.FetcherStopped) -> None:
        self.threads.get(event.broker, {}).pop((event.leader, event.fetcher_id), None)

    def _remove(self, broker: int, name: TopicPartition) -> dict[ThreadKey, int]:
        """Remove a partition from the broker's threads. Returns these threads with their
        offsets."""
        removed = {}
        for key, thread in self.threads.get(broker, {}).items():
            thread.delays.pop(name, None)
            if name in thread.offsets:
                removed[key] = thread.offsets.pop(name)
        return removed

    def on_stop_replica(self, event: e.StopReplica) -> None:
        removed = self._remove(event.broker, event.partition)
        self._stopped[event.broker, event.partition] = removed

    def on_stop_replica_ignored(self, event: e.StopReplicaIgnored) -> None:
        removed = self._stopped.pop((event.broker, event.partition), {})
        for key, offset in removed.items():
            self.threads[event.broker][key].offsets[event.partition] = offset

    def on_log_dir_failed(self, event: e.LogDirFailed) -> None:
        for name in event.partitions:
            self._remove(event.broker, name)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        replica = self._replicas.of(event.partition, event.broker)
        if replica is not None and replica.leadership_seq == event.seq:
            self._remove(event.broker, event.partition)

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if event.role == "leader":
            return
        leader = self.logs.of(event.partition, event.broker).leader
        hw = self.logs.of(event.partition, leader).hw
        lag = self.lag[event.broker, event.partition] = max(0, hw - event.leo)
        self.lag_max = max(self.lag_max, lag)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self.lag.pop((event.broker, event.partition), None)
        self._remove(event.broker, event.partition)

    def min_rate(self, end_us: int) -> float:
        """Requests per second of the slowest fetcher thread over its lifetime."""
        rates = [
            fetcher.requests * 1_000_000 / (end_us - fetcher.first_us)
            for fetcher in self.fetchers.values()
            if end_us > fetcher.first_us
        ]
        return min(rates, default=0.0)
