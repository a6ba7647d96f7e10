"""Replication quotas: the bytes per second that throttled replicas may transfer through one broker,
in each direction.

The rate is measured over sampled windows, as by Kafka's metrics. Knows no threads. Sources:
server/ReplicationQuotaManager.scala@2.6.3, common/metrics/stats/SimpleRate.java@2.6.3.
"""

from __future__ import annotations

import msgspec

from emulator.trace.values import TopicPartition

ALL_REPLICAS = "*"
UNLIMITED = 1 << 62


class _Sample(msgspec.Struct):
    """One window: its start and its bytes."""

    began_ms: int
    total: int = 0


class SimpleRate:
    """Bytes per second since the start of the oldest of `samples` windows, but over at least one
    window (SimpleRate over WindowedSum)."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._count, self._window_ms = samples, window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: int, now_ms: int) -> None:
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        if now_ms - samples[self._current].began_ms >= self._window_ms:
            self._current = (self._current + 1) % self._count
            # The windows are a ring: the next one replaces the oldest.
            samples[self._current : self._current + 1] = [_Sample(now_ms)]
        samples[self._current].total += value

    def measure(self, now_ms: int) -> float:
        """The first measurement starts a window, as the first record does."""
        samples, expire_ms = self._samples, self._count * self._window_ms
        # An obsolete window restarts now, in its place (SampledStat.purgeObsoleteSamples).
        self._samples = samples = [
            _Sample(now_ms) if now_ms - one.began_ms >= expire_ms else one for one in samples
        ] or [_Sample(now_ms)]
        elapsed_ms = max(now_ms - min(one.began_ms for one in samples), self._window_ms)
        return sum(one.total for one in samples) / (elapsed_ms / 1000)


class ReplicationQuotaManager:
    """One direction (leader or follower) at one broker."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._rate = SimpleRate(samples, window_ms)
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
        """The rate is above the quota (strictly)."""
        # Bytes are counted after the transfer: one fetch may exceed the quota, and later ones
        # compensate.
        return self.bytes_per_s < UNLIMITED and self.rate(now_ms) > self.bytes_per_s

    def rate(self, now_ms: int) -> float:
        """Bytes per second: `byte-rate` of Kafka's metrics."""
        return self._rate.measure(now_ms)

    def record(self, size: int, now_ms: int) -> None:
        """Count transferred bytes of throttled replicas."""
        self._rate.record(size, now_ms)


def throttled_partitions(text: str, broker: int) -> frozenset[int] | str:
    """The value of `*.replication.throttled.replicas` for one broker: `*`, or `partition:broker,…`
    (ConfigHandler.parseThrottledPartitions)."""
    text = text.strip()
    if text in (ALL_REPLICAS, "none"):
        return ALL_REPLICAS if text == ALL_REPLICAS else frozenset()
    pairs = [entry.split(":") for entry in text.split(",") if entry.strip()]
    return frozenset(int(p[0]) for p in pairs if len(p) == 2 and int(p[1]) == broker)
