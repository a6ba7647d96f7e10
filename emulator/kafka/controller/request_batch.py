"""Control requests of one transition, collected per broker and sent together.

A LeaderAndIsr for a partition also adds it to the UpdateMetadata for all brokers. Entries are made
from the cache when they are added. Requests are sent in the order LeaderAndIsr, UpdateMetadata,
StopReplica. Source: controller/ControllerChannelManager.scala@2.6.3
AbstractControllerBrokerRequestBatch; spec §6.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from emulator.kafka.controller.channel_manager import ControllerChannelManager
from emulator.kafka.controller.context import ControllerContext
from emulator.kafka.controller.errors import IllegalState
from emulator.kafka.controller.ports import Host
from emulator.kafka.profiles.base import StopReplicas
from emulator.kafka.profiles.guards.controller import (
    DELETIONS_SENT_ONCE,
    SHUTTING_DOWN_ARE_TOLD,
    SMALL_UPDATE_METADATA,
    STOP_REPLICA_EPOCH,
)
from emulator.kafka.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from emulator.trace.values import PartitionState, TopicPartition
from zk.client.codec import LeaderIsrAndControllerEpoch, ReplicaAssignment

UNKNOWN_LEADER_EPOCH = -1
EPOCH_DURING_DELETE = LEADER_DURING_DELETE = -2
INITIAL_LEADER_EPOCH = INITIAL_ZK_VERSION = 0


class ControllerBrokerRequestBatch:
    """One batch at a time."""

    def __init__(
        self,
        host: Host,
        context: ControllerContext,
        channels: ControllerChannelManager,
        on_leader_and_isr_response: Callable[[int, LeaderAndIsrResponse], None],
        on_update_metadata_response: Callable[[int, UpdateMetadataResponse], None],
        on_deletion_response: Callable[[int, StopReplicaResponse], None],
    ) -> None:
        self._host, self._context, self._channels = host, context, channels
        self._on_leader_and_isr_response = on_leader_and_isr_response
        self._on_update_metadata_response = on_update_metadata_response
        self._on_deletion_response = on_deletion_response
        self._stops_with_epoch = STOP_REPLICA_EPOCH in host.guards
        self._none_means_none = SMALL_UPDATE_METADATA in host.guards
        self._only_what_is_given = DELETIONS_SENT_ONCE in host.guards
        self._tells_shutting_down = SHUTTING_DOWN_ARE_TOLD in host.guards
        self._leader_and_isr: dict[int, dict[TopicPartition, PartitionState]] = {}
        self._update_metadata: dict[TopicPartition, PartitionState] = {}
        self._update_metadata_brokers: dict[int, None] = {}
        self._stop_replica: dict[int, list[StopReplicaPartition]] = {}

    def new_batch(self) -> None:
        """Start a batch, which must be empty; IllegalState lists the requests left in it."""
        for left, name in (
            (self._leader_and_isr, "LeaderAndIsr"),
            (self._stop_replica, "StopReplica"),
            (self._update_metadata_brokers, "UpdateMetadata"),
        ):
            if left:
                raise IllegalState(f"the batch is not empty: {name} to {sorted(left)} was not sent")

    def clear(self) -> None:
        """Drop all collected requests."""
        self._leader_and_isr.clear()
        self._update_metadata.clear()
        self._update_metadata_brokers.clear()
        self._stop_replica.clear()

    def add_leader_and_isr(
        self,
        brokers: Iterable[int],
        partition: TopicPartition,
        state: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
        *,
        is_new: bool,
    ) -> None:
        """Add a partition; a later entry for the same broker and partition replaces the earlier
        one. `is_new` is sticky."""
        # The entry is made now: later changes of the cache are not in it.
        entry = _entry(partition, state, assignment)
        for broker in brokers:
            if broker >= 0:
                # As in Kafka, a negative id (no leader, or a deleted topic's) receives nothing.
                entries = self._leader_and_isr.setdefault(broker, {})
                before = entries.get(partition)
                already_new = before is not None and before.is_new
                entries[partition] = msgspec.structs.replace(entry, is_new=is_new or already_new)
        # All brokers need the leader, for clients' metadata requests; only the replicas get
        # LeaderAndIsr.
        self.add_update_metadata(self._context.live_or_shutting_down, [partition])

    def add_stop_replica(
        self, brokers: Iterable[int], partition: TopicPartition, *, delete: bool
    ) -> None:
        """Add a StopReplica. Its leader epoch is the cached one, or -2 for a topic under deletion
        (none before 2.6)."""
        cached = self._context.leadership.get(partition)
        # The epoch is the cached one at this moment, not that of the transition. A broker acts only
        # on an epoch greater than its own, unless the replica is deleted (spec §4.4).
        epoch = cached.leader_and_isr.leader_epoch if cached else UNKNOWN_LEADER_EPOCH
        if partition.topic in self._context.topics_to_be_deleted:
            epoch = EPOCH_DURING_DELETE
        if not self._stops_with_epoch:
            epoch = UNKNOWN_LEADER_EPOCH
        for broker in brokers:
            if broker >= 0:
                entries = self._stop_replica.setdefault(broker, [])
                entries.append(StopReplicaPartition(partition, epoch, delete))

    def add_update_metadata(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to UpdateMetadata; those without leadership information are left out. Up
        to 2.1 an empty list means all partitions. Up to 1.1 all partitions under deletion are
        always added.
        """
        self._update_metadata_brokers.update(dict.fromkeys(b for b in brokers if b >= 0))
        included = dict.fromkeys(partitions)
        if not included and not self._none_means_none:
            included = dict.fromkeys(self._context.leadership)
        if not self._only_what_is_given:
            deleted = self._context.topics_to_be_deleted
            included |= dict.fromkeys(p for p in self._context.assignments if p.topic in deleted)
        for partition in included:
            state = self._context.leadership.get(partition)
            if state is not None:
                assignment = self._context.assignment(partition)
                online = self._context.is_replica_online
                offline = tuple(b for b in assignment.replicas if not online(b, partition))
                entry = _entry(partition, state, assignment)
                if partition.topic in self._context.topics_to_be_deleted:
                    # LeaderAndIsr.scala duringDelete: epoch and version are those of a new state.
                    # EpochDuringDelete is only for StopReplica.
                    entry = msgspec.structs.replace(
                        entry,
                        leader=LEADER_DURING_DELETE,
                        leader_epoch=INITIAL_LEADER_EPOCH,
                        zk_version=INITIAL_ZK_VERSION,
                    )
                self._update_metadata[partition] = msgspec.structs.replace(
                    entry,
                    adding_replicas=(),
                    removing_replicas=(),
                    offline_replicas=offline,
                )

    async def send(self, controller_epoch: int) -> None:
        """Queue the requests for registered brokers; requests to others are dropped
        (sendRequestsToBrokers)."""
        # Each broker gets LeaderAndIsr before UpdateMetadata before StopReplica: a leader knows its
        # role before clients are directed to it. There is no order between brokers: another broker
        # may name a leader that has not received its LeaderAndIsr yet.
        context, sender = self._context, self._host.broker
        brokers = [where for where, _ in context.live_brokers.values()]
        try:
            for broker, entries in list(self._leader_and_isr.items()):
                if broker not in (
                    context.live_brokers if self._tells_shutting_down else context.live
                ):
                    continue
                leaders = frozenset(s.leader for s in entries.values())
                roles = LeaderAndIsrRequest(
                    sender,
                    controller_epoch,
                    context.live_brokers[broker][1],
                    tuple(entries.values()),
                    # Only the leaders' endpoints: a follower needs them to fetch.
                    tuple(b for b in brokers if b.broker in leaders),
                )
                await self._channels.send_request(
                    broker, roles, partial(self._on_leader_and_isr_response, broker)
                )
            states, live = tuple(self._update_metadata.values()), tuple(brokers)
            for broker in sorted(self._update_metadata_brokers):
                if broker in context.live_brokers:
                    update = UpdateMetadataRequest(
                        sender, controller_epoch, context.live_brokers[broker][1], states, live
                    )
                    await self._channels.send_request(
                        broker, update, partial(self._on_update_metadata_response, broker)
                    )
            for broker, stops in list(self._stop_replica.items()):
                if broker not in context.live_brokers:
                    continue
                for group in stop_replica_groups(self._host.profile.stop_replicas, stops):
                    stop = StopReplicaRequest(
                        sender, controller_epoch, context.live_brokers[broker][1], group
                    )
                    answered = partial(self._stop_replica_answered, broker, group)
                    await self._channels.send_request(broker, stop, answered)
        finally:
            # Emptied even if a send fails. What a failed transition leaves behind never reached
            # this method (KAFKA-12315).
            self.clear()

    def _stop_replica_answered(
        self,
        broker: int,
        stopped: tuple[StopReplicaPartition, ...],
        response: StopReplicaResponse,
    ) -> None:
        """Pass on the responses for replicas to be deleted, of topics whose deletion has
        started."""
        deleting = {
            p.partition
            for p in stopped
            if p.delete and p.partition.topic in self._context.topics_with_deletion_started
        }
        answers = tuple((p, e) for p, e in response.partitions if p in deleting)
        if answers:
            self._on_deletion_response(broker, StopReplicaResponse(response.error, answers))


def stop_replica_groups(
    strategy: StopReplicas, stops: Sequence[StopReplicaPartition]
) -> list[tuple[StopReplicaPartition, ...]]:
    """The partitions of each StopReplica to one broker, in sending order."""
    each: list[tuple[StopReplicaPartition, ...]] = [(stop,) for stop in stops]
    if strategy == "each-alone":
        return each
    if strategy == "empty-then-each":
        # Every replica has a callback, so none is grouped; the empty group is sent all the same.
        return [(), *each]
    deleted = tuple(stop for stop in stops if stop.delete)
    remaining = tuple(stop for stop in stops if not stop.delete)
    if strategy == "kept-together":
        # The group is sent even if it is empty.
        return [remaining, *((stop,) for stop in deleted)]
    if strategy == "by-deletion":
        return [group for group in (deleted, remaining) if group]
    # A later entry of a partition replaces the earlier one; the delete flag is sticky.
    together: dict[TopicPartition, StopReplicaPartition] = {}
    for stop in stops:
        before = together.get(stop.partition)
        deletes = stop.delete or (before is not None and before.delete)
        together[stop.partition] = stop._replace(delete=deletes)
    return [tuple(together.values())]


def _entry(
    partition: TopicPartition, state: LeaderIsrAndControllerEpoch, assignment: ReplicaAssignment
) -> PartitionState:
    leader_and_isr = state.leader_and_isr
    return PartitionState(
        partition,
        state.controller_epoch,
        leader_and_isr.leader,
        leader_and_isr.leader_epoch,
        leader_and_isr.isr,
        leader_and_isr.zk_version,
        assignment.replicas,
        assignment.adding_replicas,
        assignment.removing_replicas,
    )
