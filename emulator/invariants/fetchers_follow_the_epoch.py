"""A broker fetches from the leader of its own leader epoch."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class FetchesFromAnother(Violation, frozen=True):
    epoch: int
    leader: int
    fetched_from: int

    sentence = (
        "broker {broker} is in leader epoch {epoch}, whose leader is {leader},"
        " but it still fetches from {fetched_from}"
    )


class FetchersFollowTheEpoch(Invariant):
    """Once a broker has adopted a leader epoch, it fetches the partition only from the leader of
    that epoch; if it leads the partition itself, from no broker (S14)."""

    def begin(self) -> None:
        self._wrong_leaders: dict[tuple[TopicPartition, int], tuple[int, int]] = {}

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._wrong_leaders = {
            key: one for key, one in self._wrong_leaders.items() if key[1] != event.broker
        }

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        """A request names many partitions: their fetchers go only after all have become followers
        (ReplicaManager.scala@2.6.3 makeFollowers), so this one is not done yet."""
        for key in [key for key in self._wrong_leaders if key[1] == event.broker]:
            del self._wrong_leaders[key]

    def on_fetch_sent(self, event: e.FetchSent) -> None:
        """A request that was built just before is still sent, and its response is discarded; so
        only the second fetch to the wrong leader is a violation."""
        for offset in event.offsets:
            name = offset.partition
            replica = self.state.replicas.of(name, event.broker)
            if replica is None or replica.leader == event.leader or replica.leader < 0:
                continue
            key = name, event.broker
            if self._wrong_leaders.get(key) == (event.leader, replica.leader_epoch):
                self.violated(
                    FetchesFromAnother(
                        replica.leader_epoch,
                        replica.leader,
                        event.leader,
                        facts=(replica.seq, event.seq),
                        partition=name,
                        broker=event.broker,
                    )
                )
            self._wrong_leaders[key] = event.leader, replica.leader_epoch
