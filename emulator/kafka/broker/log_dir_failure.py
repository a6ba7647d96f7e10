"""The broker's reaction to a failed write to a log directory.

Owns the handler thread and the order of its steps: partitions go offline; the directory is dropped,
which halts the broker if it was the last one; the controller is notified. Sources:
server/ReplicaManager.scala@2.6.3 LogDirFailureHandler, handleLogDirFailure,
log/LogManager.scala@2.6.3 handleLogDirFailure; spec §1.8.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.replica_manager import ReplicaManager
from emulator.trace import events
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import ZooKeeperError


async def handle_log_dir_failures(
    context: BrokerContext,
    zk_client: KafkaZkClient,
    logs: LogManager,
    replicas: ReplicaManager,
    halt: Callable[[str], None],
) -> None:
    """The body of the thread LogDirFailureHandler; `halt` ends the process at once (Exit.halt)."""
    while True:
        directory = await logs.failures.take()
        try:
            # Before the controller is notified: its next LeaderAndIsr must find these partitions
            # offline.
            removed = await replicas.take_offline(directory)
            context.emit(events.LogDirFailed, directory.number, removed)
            if logs.handle_log_dir_failure(directory):
                await zk_client.propagate_log_dir_event(context.broker)
            else:
                halt("all log directories have failed")
        except ZooKeeperError as error:
            context.failed("log directory failure", error)
