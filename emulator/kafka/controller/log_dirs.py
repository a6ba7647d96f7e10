"""Log directories that fail: which replicas are offline although their broker lives.

A broker only says that some directory of it failed; which replicas that concerns the controller
finds out by sending LeaderAndIsr for all of them: the answer has KAFKA_STORAGE_ERROR for those.
Source: controller/KafkaController.scala@2.6.3 processLogDirEventNotification,
onBrokerLogDirFailure, processLeaderAndIsrResponseReceived; spec §1.8, §6.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.controller.brokers import Brokers
from emulator.kafka.controller.context import PartitionAndReplica, ReplicaState
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import LeaderAndIsrResponse
from emulator.trace import events
from zk.errors import ControllerMoved, ZooKeeperError


class LogDirectories:
    """What the active controller does about log directories."""

    def __init__(self, parts: ControllerParts, brokers: Brokers) -> None:
        self._host, self._context = parts.host, parts.context
        self._zk_client, self._replicas = parts.zk_client, parts.replicas
        self._brokers = brokers

    async def on_notification(self, listed: Sequence[str] | None = None) -> None:
        """List (which sets the watch again), read, ask the brokers; and delete what was listed,
        whatever went wrong before (a finally in Kafka)."""
        numbers = await self._zk_client.get_all_log_dir_event_notifications(listed)
        try:
            brokers = await self._zk_client.get_broker_ids_from_log_dir_events(numbers)
            # Online to Online: no state changes, but each gets a LeaderAndIsr, whose answer says
            # which of them it cannot host.
            replicas = self._context.replicas_on_brokers(brokers)
            await self._replicas.handle_state_changes(replicas, ReplicaState.ONLINE)
        except (ControllerMoved, ZooKeeperError):
            await self._delete(numbers)
            raise
        await self._delete(numbers)

    async def _delete(self, numbers: list[str]) -> None:
        version = self._context.epoch_zk_version
        await self._zk_client.delete_log_dir_event_notifications(numbers, version)

    async def on_leader_and_isr_response(self, broker: int, response: LeaderAndIsrResponse) -> None:
        """An error of the whole answer is only logged (spec §6.1)."""
        if response.error is not Errors.NONE:
            return
        before = self._context.replicas_on_offline_dirs.get(broker, {})
        now = dict(before)
        for partition, error in response.partitions:
            if error is Errors.KAFKA_STORAGE_ERROR:
                now[partition] = None
            elif error is Errors.NONE:
                now.pop(partition, None)
        self._context.replicas_on_offline_dirs[broker] = now
        new = [p for p in now if p not in before]
        if new:
            self._host.emit(events.ReplicasOffline, broker, tuple(new))
            gone = [PartitionAndReplica(p, broker) for p in new]
            await self._brokers.on_replicas_become_offline(gone)
