"""Failed log directories: replicas can be offline although their broker is alive.

A broker's notification says only that one of its directories failed. The controller finds the
replicas by sending LeaderAndIsr for all of the broker's replicas: the response has
KAFKA_STORAGE_ERROR for those that are offline. Source: controller/KafkaController.scala@2.6.3
processLogDirEventNotification, onBrokerLogDirFailure, processLeaderAndIsrResponseReceived; spec
§1.8, §6.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.controller.brokers import Brokers
from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import ReplicaState
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import LeaderAndIsrResponse
from emulator.trace import events
from zk.errors import ControllerMoved, ZooKeeperError


class LogDirectories:
    """How the active controller handles failed log directories."""

    def __init__(self, parts: ControllerParts, brokers: Brokers) -> None:
        self._host, self._context = parts.host, parts.context
        self._zk_client, self._replicas = parts.zk_client, parts.replicas
        self._brokers = brokers

    async def on_notification(self, listed: Sequence[str] | None = None) -> None:
        """List the notifications (which sets the watch again), read them, send LeaderAndIsr; then
        delete what was listed, even after an error (a finally in Kafka)."""
        numbers = await self._zk_client.get_all_log_dir_event_notifications(listed)
        try:
            brokers = await self._zk_client.get_broker_ids_from_log_dir_events(numbers)
            # Online to Online changes no state but sends LeaderAndIsr; the response names the
            # replicas that the broker cannot host.
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
        """Update the offline replicas of a broker. An error of the whole response is only logged
        (spec §6.1)."""
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
