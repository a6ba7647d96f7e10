"""A consumer of a real cluster, through librdkafka: it reads partitions from their start.

Reports what it read through a callback; belongs to no group and commits nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec
from confluent_kafka import Consumer, KafkaException, TopicPartition

from emulator.scenario.actions.clients import Consume
from emulator.worlds.real_kafka.clients import ClientSettings

_BATCH = 500
_POLL_S = 0.1
_SETTINGS: ClientSettings = {
    "group.id": "isr",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "topic.metadata.refresh.interval.ms": 1000,
    "log_level": 0,
}


class Consumed(msgspec.Struct, frozen=True):
    """Records `from_offset` up to (not including) `to_offset` were read; wall clock."""

    client: str
    topic: str
    partition: int
    from_offset: int
    to_offset: int
    hw: int
    told_us: int


class Reader:
    """One consumer's thread."""

    def __init__(
        self,
        name: str,
        request: Consume,
        reach: ClientSettings,
        now_us: Callable[[], int],
        on_read: Callable[[Consumed], object],
    ) -> None:
        self._name, self._request, self._now_us, self._on_read = name, request, now_us, on_read
        self._over = threading.Event()
        self._consumer = Consumer({**_SETTINGS, **reach})
        # Assigned, not subscribed: a group's coordinator would create `__consumer_offsets`.
        self._consumer.assign([TopicPartition(request.topic, n, 0) for n in request.partitions])
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self, patience_s: float) -> None:
        self._over.set()
        self._thread.join(patience_s)

    def _run(self) -> None:
        while not self._over.is_set():
            read: dict[int, list[int]] = {}
            for message in self._consumer.consume(_BATCH, _POLL_S):
                partition, offset = message.partition(), message.offset()
                if message.error() is None and partition is not None and offset is not None:
                    read.setdefault(partition, []).append(offset)
            for partition, offsets in read.items():
                here = TopicPartition(self._request.topic, partition)
                first, end = offsets[0], offsets[-1] + 1
                try:
                    _, hw = self._consumer.get_watermark_offsets(here, cached=True)
                except KafkaException:
                    hw = end  # no response has said it yet; what was read is below it
                name, now_us = self._name, self._now_us()
                self._on_read(
                    Consumed(name, here.topic, partition, first, end, max(hw, end), now_us)
                )
        self._consumer.close()
