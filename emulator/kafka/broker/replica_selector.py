"""Which replica a consumer should read from (KIP-392).

Owns the leader's choice; the read itself is in `local_reads`. Sources: ReplicaManager.scala@2.6.3
findPreferredReadReplica, RackAwareReplicaSelector.java@2.6.3; spec §4.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.partition import Partition
from emulator.kafka.model.config import RACK_AWARE_SELECTOR
from emulator.kafka.profiles.guards.consumers import FETCH_FROM_FOLLOWERS, PREFERRED_REPLICA_IN_ISR


class ReplicaView(NamedTuple):
    """What a selector knows of a replica. `rack` is None for a broker that is not alive."""

    broker: int
    rack: str | None
    log_end_offset: int
    ms_since_caught_up: int


def select(client_rack: str, replicas: Iterable[ReplicaView], leader: ReplicaView) -> ReplicaView:
    """The leader, unless only followers are in the client's rack: then the one that is furthest,
    caught up last, and has the greatest id."""
    near = [replica for replica in replicas if replica.rack == client_rack]
    if not near or leader.rack == client_rack:
        return leader
    return max(near, key=lambda it: (it.log_end_offset, -it.ms_since_caught_up, it.broker))


class PreferredReplicas:
    """The choice of one broker, as a leader, for the consumers of its partitions."""

    def __init__(self, context: BrokerContext, metadata_cache: MetadataCache) -> None:
        self._context, self._metadata_cache = context, metadata_cache
        self.followers_serve = FETCH_FROM_FOLLOWERS in context.guards
        self._selects = (
            self.followers_serve and context.config.replica_selector_class == RACK_AWARE_SELECTOR
        )
        self._in_isr_only = PREFERRED_REPLICA_IN_ISR in context.guards

    def find(self, hosted: Partition, fetch_offset: int, client_rack: str) -> int | None:
        """The follower to read from; None: here."""
        log = hosted.leader_log
        if not self._selects or log is None:
            return None
        # A follower whose fetches are idle has its times in their session: it gets them now.
        hosted.idle_fetches.wake()
        now_ms = self._context.now_ms()
        replicas = [
            ReplicaView(
                replica.broker,
                self._rack(replica.broker),
                replica.log_end_offset,
                now_ms - replica.last_caught_up_time_ms,
            )
            for replica in hosted.remotes.values()
            if replica.log_start_offset <= fetch_offset <= replica.log_end_offset
            and (not self._in_isr_only or replica.broker in hosted.isr)
        ]
        here = self._context.broker
        leader = ReplicaView(here, self._rack(here), log.log_end_offset, 0)
        chosen = select(client_rack, replicas, leader)
        return None if chosen is leader else chosen.broker

    def _rack(self, broker: int) -> str | None:
        alive = self._metadata_cache.alive_broker(broker)
        return None if alive is None else alive.rack
