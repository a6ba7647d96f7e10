"""A broker that became a follower in a leader epoch has begun to fetch."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class DoesNotFetch(Violation, frozen=True):
    leader: int

    sentence = "broker {broker} follows {leader}, but has not fetched from it since"


class FollowersFetch(Invariant):
    """Every broker that follows a leader has fetched from it since it received the LeaderAndIsr
    of that leader epoch (S14)."""

    liveness = True

    def begin(self) -> None:
        self._since: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        self._fetched: dict[tuple[TopicPartition, int, int], int] = {}

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._since = {key: one for key, one in self._since.items() if key[1] != event.broker}

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._since.pop((event.partition, event.broker), None)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        """Versions before 2.0.1 do nothing if the leader stays the same."""
        key = event.partition, event.broker
        if self._since.get(key, (-1, -1))[0] != event.leader:
            self._since[key] = event.leader, event.seq

    def on_stop_replica(self, event: e.StopReplica) -> None:
        self._since.pop((event.partition, event.broker), None)

    def on_fetch_sent(self, event: e.FetchSent) -> None:
        for offset in event.offsets:
            self._fetched[offset.partition, event.broker, event.leader] = event.seq

    def lacking(self) -> Iterator[Violation]:
        if not self._fetched:
            return  # real Kafka does not log it
        for (name, broker), (leader, seq) in sorted(self._since.items()):
            state = self.state.partitions.of(name).now
            alive = self.state.znodes.is_registered(broker)
            if state is None or leader < 0 or not alive:
                continue
            if self._fetched.get((name, broker, leader), -1) < seq:
                facts = seq, state.seq
                yield DoesNotFetch(leader, facts=facts, partition=name, broker=broker)
