"""Replication quotas: how many bytes per second throttled replicas may move through one broker,
each way.

A rate is measured over sampled windows as Kafka's metrics do. Knows no threads.
Sources: server/ReplicationQuotaManager.scala@2.6.3, common/metrics/stats/Rate.java@2.6.3.
"""

from __future__ import annotations

from collections import deque

from emulator.trace.values import TopicPartition

ALL_REPLICAS = "*"
UNLIMITED = 1 << 62


class SampledRate:
    """Bytes per second over `samples` windows of `window_ms` (Rate over SampledTotal)."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples, self._window_ms = samples, window_ms
        self._windows: deque[list[int]] = deque()

    def record(self, value: int, now_ms: int) -> None:
        windows = self._windows
        if not windows or now_ms - windows[-1][0] >= self._window_ms:
            windows.append([now_ms, 0])
            while len(windows) > self._samples:
                windows.popleft()
        windows[-1][1] += value

    def measure(self, now_ms: int) -> float:
        """Bytes per second; windows that are too old count no more, and at least samples - 1
        windows' time is taken as elapsed."""
        expire_ms = self._samples * self._window_ms
        while self._windows and now_ms - self._windows[0][0] >= expire_ms:
            self._windows.popleft()
        if not self._windows:
            return 0.0
        # A rate over the first moments would be huge: at least samples - 1 whole windows count.
        elapsed_ms = now_ms - self._windows[0][0]
        full_windows = elapsed_ms // self._window_ms
        elapsed_ms += max(0, self._samples - 1 - full_windows) * self._window_ms
        return sum(total for _, total in self._windows) * 1000 / max(1, elapsed_ms)


class ReplicationQuotaManager:
    """One direction (leader or follower) at one broker."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._rate = SampledRate(samples, window_ms)
        self.bytes_per_s = UNLIMITED
        self._throttled: dict[str, frozenset[int] | str] = {}
        self.throttles = False
        """Whether any replica is throttled."""

    def mark_throttled(self, topic: str, partitions: frozenset[int] | str) -> None:
        """Throttle these partitions of a topic, or all of them (`*`)."""
        self._throttled[topic] = partitions
        self.throttles = True

    def remove_throttle(self, topic: str) -> None:
        self._throttled.pop(topic, None)
        self.throttles = bool(self._throttled)

    def is_throttled(self, partition: TopicPartition) -> bool:
        partitions = self._throttled.get(partition.topic)
        if partitions is None or isinstance(partitions, str):
            return partitions == ALL_REPLICAS
        return partition.partition in partitions

    def is_quota_exceeded(self, now_ms: int) -> bool:
        """More was moved than the quota allows (strictly)."""
        # Bytes are recorded when they have moved: one fetch may go over, the next ones make up for
        # it.
        return self.bytes_per_s < UNLIMITED and self._rate.measure(now_ms) > self.bytes_per_s

    def record(self, size: int, now_ms: int) -> None:
        """These bytes of throttled replicas were moved."""
        self._rate.record(size, now_ms)


def throttled_partitions(text: str, broker: int) -> frozenset[int] | str:
    """The value of `*.replication.throttled.replicas` for one broker: `*`, or `partition:broker,…`
    (ConfigHandler.parseThrottledPartitions)."""
    text = text.strip()
    if text in (ALL_REPLICAS, "none"):
        return ALL_REPLICAS if text == ALL_REPLICAS else frozenset()
    pairs = [entry.split(":") for entry in text.split(",") if entry.strip()]
    return frozenset(int(p[0]) for p in pairs if len(p) == 2 and int(p[1]) == broker)
