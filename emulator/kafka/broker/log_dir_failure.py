"""What a broker does when a write to a log directory fails.

Owns the thread that hears of it, and the order: partitions go offline, then the directory is
forgotten, which halts the broker if it was the last one, then the controller is told. Sources:
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


class LogDirFailureHandler:
    """The thread of that name."""

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        logs: LogManager,
        replicas: ReplicaManager,
        halt: Callable[[str], None],
    ) -> None:
        """`halt` ends the process at once (Exit.halt)."""
        self._context, self._zk_client = context, zk_client
        self._logs, self._replicas, self._halt = logs, replicas, halt

    def start(self) -> None:
        self._context.spawn("LogDirFailureHandler", self._run())

    async def _run(self) -> None:
        while True:
            directory = await self._logs.failures.take()
            try:
                removed = await self._replicas.take_offline(directory)
                self._context.emit(events.LogDirFailed, directory.number, removed)
                if self._logs.handle_log_dir_failure(directory):
                    await self._zk_client.propagate_log_dir_event(self._context.broker)
                else:
                    self._halt("all log directories have failed")
            except ZooKeeperError as error:
                self._context.failed("log directory failure", error)
