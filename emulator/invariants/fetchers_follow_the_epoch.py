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


SOON_US = 1_000_000


class FetchersFollowTheEpoch(Invariant):
    """Once a broker has adopted a leader epoch, it soon fetches the partition only from the leader
    of that epoch; if it leads the partition itself, from no broker (S14)."""

    def begin(self) -> None:
        self._since: dict[tuple[TopicPartition, int], tuple[tuple[int, int], int]] = {}
        """For each replica that fetches from another leader: that leader and the epoch, and the
        time of the first such fetch."""

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        """A paused process cannot remove its fetchers."""
        self._since = {key: one for key, one in self._since.items() if key[1] != event.broker}

    def on_fetch_sent(self, event: e.FetchSent) -> None:
        """The thread that adopts the epochs of a request removes the fetchers after the last
        partition (ReplicaManager.scala@2.6.3 makeFollowers): until then some fetches are sent."""
        for offset in event.offsets:
            name = offset.partition
            replica = self.state.replicas.of(name, event.broker)
            if replica is None or replica.leader == event.leader or replica.leader < 0:
                continue
            key, wrong = (name, event.broker), (event.leader, replica.leader_epoch)
            before, since_us = self._since.get(key, (None, 0))
            if before != wrong:
                self._since[key] = wrong, event.t
            elif event.t - since_us > SOON_US:
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
