"""The controller's reaction to broker registrations: brokers that start, stop, restart or change.

Owns the watches on registrations. Source: controller/KafkaController.scala@2.6.3
processBrokerChange, onBrokerStartup, onBrokerFailure, processBrokerModification; spec §6.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import UNKNOWN_BROKER_EPOCH, PartitionState, ReplicaState
from emulator.kafka.controller.handlers import NodeChangeHandler
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.reassignment import Reassignments
from emulator.kafka.controller.topic_deletion import TopicDeletionManager
from emulator.kafka.profiles.guards.controller import (
    ALL_OFFLINE_LEADERS_ARE_REPLACED,
    BROKER_EPOCHS,
    BROKER_LIST_ANNOUNCED,
    BROKERS_READ_AGAIN,
    EVERY_DEATH_IS_TOLD,
    NEW_BROKERS_NOT_SENT_DELETIONS,
)
from emulator.kafka.protocol.messages import LiveBroker
from emulator.trace import events
from zk import paths
from zk.client.codec_admin import BrokerInfo


class Brokers:
    """How the active controller handles broker changes."""

    def __init__(
        self,
        parts: ControllerParts,
        deletions: TopicDeletionManager,
        reassignments: Reassignments,
    ) -> None:
        self._parts, self._context = parts, parts.context
        self._partitions, self._replicas = parts.partitions, parts.replicas
        self._deletions, self._reassignments = deletions, reassignments
        guards = parts.host.guards
        self._sees_bounces = BROKER_EPOCHS in guards
        self._reads_again = BROKERS_READ_AGAIN in guards
        self._watches = parts.host.profile.zookeeper_client == "asynchronous"
        self.watched: dict[int, None] = {}

    async def watch(self, brokers: Iterable[int]) -> None:
        """Set a watch on each registration with `exists` (since 1.1, for dynamic listeners)."""
        for broker in brokers if self._watches else ():
            process = partial(self.on_modification, broker)
            modified = partial(self._parts.put_if_active, "BrokerModifications", process)
            handler = NodeChangeHandler(paths.broker_id(broker), changed=modified)
            self.watched[broker] = None
            await self._parts.zk_client.register_and_check_existence(handler)

    def unwatch(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            if broker in self.watched:
                del self.watched[broker]
                self._parts.zk_client.client.unregister_change_handler(paths.broker_id(broker))

    def unwatch_all(self) -> None:
        self.unwatch(list(self.watched))

    async def read(self) -> None:
        """Read all registrations (at fail-over)."""
        self._context.live_brokers = self._live(
            await self._parts.zk_client.get_all_broker_and_epochs()
        )

    def _live(
        self, registered: dict[int, tuple[BrokerInfo, int]]
    ) -> dict[int, tuple[LiveBroker, int]]:
        """Before 2.2 brokers have no epoch."""
        return {
            b: (_where(b, info), epoch if self._sees_bounces else UNKNOWN_BROKER_EPOCH)
            for b, (info, epoch) in registered.items()
        }

    async def on_change(self, listed: Sequence[str] | None = None) -> None:
        """Compare the registrations with the cache: new, bounced (greater czxid) and dead brokers.
        `listed` came with the event; before 0.11 the controller reads the new ones of these, then
        all.
        """
        zk_client, cached = self._parts.zk_client, self._context.live_brokers
        if listed is None or self._reads_again:
            registered = await zk_client.get_all_broker_and_epochs()
        else:
            ids = sorted(map(int, listed))
            # The result of the first read is not used, but ZooKeeper gets its requests.
            await zk_client.get_brokers_and_epochs([b for b in ids if b not in cached])
            registered = await zk_client.get_brokers_and_epochs(ids)
            await self._parts.host.kernel.checkpoint("brokers_parsed")
        await self._parts.host.kernel.checkpoint("brokers_compared")
        new = sorted(b for b in registered if b not in cached)
        dead = sorted(b for b in cached if b not in registered)
        live = self._live(registered)
        bounced = sorted(b for b in live if b in cached and live[b][1] > cached[b][1])
        self._parts.host.emit(
            events.BrokerChange, tuple(new), tuple(dead), tuple(bounced), tuple(sorted(registered))
        )
        # Channels first: the steps below send requests to the new brokers.
        channels = self._parts.channels
        for broker in new:
            await channels.add_broker(live[broker][0])
        if bounced or dead:
            # Not in `remove_broker`: a controller that resigns ends its send threads at once.
            await self._parts.host.kernel.checkpoint("remove_broker")
        for broker in bounced:
            # The queued requests carry the broker epoch of the previous process.
            await channels.remove_broker(broker)
            await channels.add_broker(live[broker][0])
        for broker in dead:
            await channels.remove_broker(broker)
        # New, bounced, dead: in this order (processBrokerChange). A broker that dies while another
        # starts may still be elected by the first step, and is replaced by the last. Up to 2.1 the
        # list of live brokers is replaced before that (controllerContext.liveBrokers = curBrokers).
        if BROKER_EPOCHS not in self._parts.host.guards:
            self._forget(dead)
        if new:
            cached.update({b: live[b] for b in new})
            await self._on_startup(new)
        if bounced:
            # A bounced broker is handled as dead for a moment: requests to its previous process are
            # void, and each partition that it led needs an election, so that the leader epoch
            # rises.
            for broker in bounced:
                cached.pop(broker)
            await self._on_failure(bounced)
            cached.update({b: live[b] for b in bounced})
            await self._on_startup(bounced)
        if dead:
            self._forget(dead)
            await self._on_failure(dead)

    def _forget(self, dead: Iterable[int]) -> None:
        """They are no longer live."""
        for broker in dead:
            self._context.live_brokers.pop(broker, None)

    async def _on_startup(self, brokers: Sequence[int]) -> None:
        """Send metadata to all brokers, bring the replicas online, elect leaders
        (onBrokerStartup)."""
        # A restarted broker reports failed directories again, in its LeaderAndIsr response.
        for broker in brokers:
            self._context.replicas_on_offline_dirs.pop(broker, None)
        # Existing brokers learn of the new ones, without partitions; the new ones get all
        # partitions. This precedes any LeaderAndIsr: a new follower must know the leader's address
        # (H28).
        if BROKER_LIST_ANNOUNCED in self._parts.host.guards:
            existing = [b for b in self._context.live_or_shutting_down if b not in brokers]
            await self._parts.send_update_metadata(existing, ())
        named = tuple(self._context.leadership)
        if NEW_BROKERS_NOT_SENT_DELETIONS in self._parts.host.guards:
            deleted = self._context.topics_to_be_deleted
            named = tuple(p for p in named if p.topic not in deleted)
        await self._parts.send_update_metadata(brokers, named)
        # LeaderAndIsr is made from the cache, which may be behind a leader's own ISR writes.
        replicas = self._context.replicas_on_brokers(brokers)
        await self._replicas.handle_state_changes(replicas, ReplicaState.ONLINE)
        await self._partitions.trigger_online_partition_state_change()
        await self._reassignments.resume(
            lambda p: any(b in self._context.assignment(p).target_replicas for b in brokers)
        )
        await self._deletions.resume_for(dict.fromkeys(r.partition.topic for r in replicas))
        await self._parts.host.kernel.checkpoint("brokers_started")
        await self.watch(brokers)

    async def _on_failure(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            self._context.replicas_on_offline_dirs.pop(broker, None)
            # A broker that dies during its controlled shutdown is no longer shutting down: its next
            # process may be elected.
            self._context.shutting_down.pop(broker, None)
        await self.on_replicas_become_offline(self._context.replicas_on_brokers(brokers))
        self.unwatch(brokers)

    async def on_replicas_become_offline(self, replicas: Sequence[PartitionAndReplica]) -> None:
        """Elect leaders for leaderless partitions and remove the replicas from their ISRs; replicas
        of topics under deletion fail instead."""
        context = self._context
        # Elections before ISR removals: an election removes dead members in the same write. A
        # separate removal is left only where the leader is alive.
        leaderless = context.partitions_with_offline_leader()
        guards = self._parts.host.guards
        if ALL_OFFLINE_LEADERS_ARE_REPLACED not in guards:
            gone = {one.replica for one in replicas}
            leaderless = [
                p for p in leaderless if context.leadership[p].leader_and_isr.leader in gone
            ]
        await self._partitions.handle_state_changes(leaderless, PartitionState.OFFLINE)
        elections = await self._partitions.trigger_online_partition_state_change()
        remaining = [r for r in replicas if r.partition.topic not in context.topics_to_be_deleted]
        await self._replicas.handle_state_changes(remaining, ReplicaState.OFFLINE)
        await self._deletions.fail([r for r in replicas if r not in remaining])
        # An election and an ISR removal send metadata to every live broker. Up to 3.0 Kafka takes
        # each partition without a leader for an election.
        if EVERY_DEATH_IS_TOLD in guards:
            is_told = bool(remaining) or any(one.state is not None for one in elections)
        else:
            is_told = bool(leaderless)
        if BROKER_LIST_ANNOUNCED in guards and not is_told:
            await self._parts.send_update_metadata(context.live_or_shutting_down, ())

    async def on_modification(self, broker: int) -> None:
        """A broker's endpoints changed: send UpdateMetadata to all live brokers."""
        info = await self._parts.zk_client.get_broker(broker)
        known = self._context.live_brokers.get(broker)
        if info is None or known is None or _where(broker, info) == known[0]:
            return
        # The broker epoch stays: the znode was changed, not created again.
        self._context.live_brokers[broker] = (_where(broker, info), known[1])
        await self._parts.send_update_metadata(self._context.live_or_shutting_down, ())


def _where(broker: int, info: BrokerInfo) -> LiveBroker:
    endpoint = info.endpoints[0]
    return LiveBroker(broker, endpoint.host, endpoint.port, info.rack)
