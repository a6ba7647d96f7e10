"""Results of produce requests, checked against the final logs.

Counts records acknowledged, refused and lost. A record is *lost* when a producer received `ok` and
the final leader's log lacks it. With acks=all that violates Kafka's guarantee; with acks=1 it does
not and is counted separately. If a partition has no leader at the end, its last leader's log is
used.
"""

from __future__ import annotations

from collections import Counter

from emulator.trace import events as e
from emulator.trace.state.logs import Logs, missing
from emulator.trace.state.partitions import Partitions
from emulator.trace.state.replica_log import ReplicaLog
from emulator.trace.values import TopicPartition

ALL = "all"
OK = "ok"


class Records:
    """Counts of records by topic; results under the client library's names."""

    def __init__(self, logs: Logs, partitions: Partitions) -> None:
        self.logs, self.partitions = logs, partitions
        self.acknowledged: Counter[str] = Counter()
        self.refused: Counter[tuple[str, str]] = Counter()
        self._promised: dict[tuple[TopicPartition, str], ReplicaLog] = {}

    def on_records_produced(self, event: e.RecordsProduced) -> None:
        topic = event.partition.topic
        if event.result != OK:
            self.refused[topic, event.result] += event.count
            return
        self.acknowledged[topic] += event.count
        if event.base_offset >= 0 and event.acks != "0":
            self._promise(event)

    def on_log_start_moved(self, event: e.LogStartMoved) -> None:
        """Records that are deleted are not lost."""
        for (name, _), promised in self._promised.items():
            if name == event.partition:
                promised.delete_before(max(promised.start, event.log_start_offset))

    def _promise(self, event: e.RecordsProduced) -> None:
        """Remember which record was acknowledged: the one now at that offset in the leader's
        log."""
        name, base = event.partition, event.base_offset
        log = self._answerer(event)
        promised = self._promised.setdefault((name, _acks(event.acks)), ReplicaLog())
        for piece in reversed(list(log.between(base, base + event.count))):
            promised.append(piece.base, piece.end, piece.epoch)

    def _answerer(self, event: e.RecordsProduced) -> ReplicaLog:
        """The log of the broker that acknowledged. For acks=all it must be a leader whose high
        watermark is past the records: the last writer may be a deposed leader that does not know it
        yet."""
        name, end = event.partition, event.base_offset + event.count
        last = self.logs.of(name, self.logs.writer.get(name, -1))
        if _acks(event.acks) != ALL or last.hw >= end:
            return last
        logs = self.logs.of_partition[name].items()
        others = [log for broker, log in logs if log.leader == broker and log.hw >= end]
        return others[-1] if others else last

    def refusals(self, topic: str | None = None, result: str | None = None) -> int:
        """The number of refused records, optionally of one topic or with one result."""
        return sum(
            count
            for (of_topic, of_result), count in self.refused.items()
            if topic in (None, of_topic) and result in (None, of_result)
        )

    @property
    def unseen(self) -> bool:
        """Whether records were acknowledged for which the trace has no log. Real Kafka does not log
        appends."""
        if not self.acknowledged.total():
            return False
        final_leaders = {self._final_leader(name) for name, _ in self._promised}
        return not self.logs.writer or not all(map(self.logs.has_appends_of, final_leaders))

    def lost(self, acks: str = ALL, topic: str | None = None) -> int:
        """The number of acknowledged records that the final leader lacks."""
        return sum(
            missing(promised, self.logs.of(name, self._final_leader(name)))
            for (name, of_acks), promised in self._promised.items()
            if of_acks == acks and topic in (None, name.topic)
        )

    def promised(self, topic: str, acks: str = ALL) -> int:
        """The number of acknowledged records that must not be lost."""
        return sum(
            piece.end - piece.base
            for (name, of_acks), log in self._promised.items()
            if of_acks == acks and name.topic == topic
            for piece in log.pieces
        )

    def _final_leader(self, name: TopicPartition) -> int:
        for state in reversed(self.partitions.of(name).states):
            if state.leader >= 0:
                return state.leader
        return self.logs.writer.get(name, -1)


def _acks(text: str) -> str:
    return ALL if text in (ALL, "-1") else text
