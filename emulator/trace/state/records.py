"""Results of produce requests, checked against the logs at the end.

Owns the records acknowledged, refused and lost. A record is *lost* when a producer got the result
`ok` and the final leader's log lacks it. With acks=all that breaks Kafka's promise; with acks=1 it
does not, and is counted separately. A partition without a leader at the end is judged by its last
one.
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
    """Counts of records by topic; results by their names as the client library has them."""

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

    def _promise(self, event: e.RecordsProduced) -> None:
        """Remember the acknowledged record: the one that the leader has at that offset now."""
        name, base = event.partition, event.base_offset
        log = self._answerer(event)
        promised = self._promised.setdefault((name, _acks(event.acks)), ReplicaLog())
        for piece in reversed(list(log.between(base, base + event.count))):
            promised.append(piece.base, piece.end, piece.epoch)

    def _answerer(self, event: e.RecordsProduced) -> ReplicaLog:
        """The log of the broker that wrote last. For acks=all, a leader whose high watermark is
        past the records: the last writer may be a deposed leader that does not know it yet."""
        name, end = event.partition, event.base_offset + event.count
        last = self.logs.of(name, self.logs.writer.get(name, -1))
        if _acks(event.acks) != ALL or last.hw >= end:
            return last
        logs = self.logs.of_partition[name].items()
        others = [log for broker, log in logs if log.leader == broker and log.hw >= end]
        return others[-1] if others else last

    def refusals(self, topic: str | None = None, result: str | None = None) -> int:
        """Records refused, of one topic or with one result if given."""
        return sum(
            count
            for (of_topic, of_result), count in self.refused.items()
            if topic in (None, of_topic) and result in (None, of_result)
        )

    @property
    def unseen(self) -> bool:
        """Records were acknowledged, and the log that is to have them was not seen (real Kafka does
        not tell of it)."""
        if not self.acknowledged.total():
            return False
        final_leaders = {self._final_leader(name) for name, _ in self._promised}
        return not self.logs.writer or not all(map(self.logs.has_appends_of, final_leaders))

    def lost(self, acks: str = ALL, topic: str | None = None) -> int:
        """Acknowledged records that the final leader does not have."""
        return sum(
            missing(promised, self.logs.of(name, self._final_leader(name)))
            for (name, of_acks), promised in self._promised.items()
            if of_acks == acks and topic in (None, name.topic)
        )

    def promised(self, topic: str, acks: str = ALL) -> int:
        """Acknowledged records that must not be lost."""
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
