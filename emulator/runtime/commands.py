"""Commands that are written straight into ZooKeeper, by a session that is no broker's.

As the tools of Kafka's ZooKeeper era do it: open a session, create the command znode, close the
session. Whether the command is carried out is the controller's business. Sources:
admin/ReassignPartitionsCommand.scala@2.6.3, admin/LeaderElectionCommand.scala and its predecessor
PreferredReplicaLeaderElectionCommand.scala; spec §1.9.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from emulator.broker.context import BrokerContext, KernelThreads, TraceProbe
from emulator.kernel.scheduler import Kernel
from emulator.model.config import KafkaConfig
from emulator.profiles.base import Profile
from emulator.trace.values import TopicPartition
from zk import paths
from zk.client import ZooKeeperClient
from zk.errors import Code, ZooKeeperError
from zk.kafka_zk_client import KafkaZkClient
from zk.ops import Delete
from zk.wire import Service
from zk.zk_requests import MATCH_ANY_VERSION

TOOL = "tool"
SESSION_TIMEOUT_MS = 30_000
NOBODY = 0
Done = Callable[[str], object]


class ZooKeeperAccess(Protocol):
    """What a tool needs of its world."""

    def service_for(self, client: str) -> Service: ...

    def wall_ms(self) -> int: ...


class CommandZnodes:
    """The tool; each command is a process of its own."""

    def __init__(self, kernel: Kernel, profile: Profile, world: ZooKeeperAccess) -> None:
        self._kernel, self._profile, self._world = kernel, profile, world
        self._service: Service | None = None

    def reassign(
        self, partition: TopicPartition, replicas: tuple[int, ...] | None, done: Done
    ) -> None:
        """`/admin/reassign_partitions` with one partition; there is no cancelling through it."""
        if replicas is None:
            done("INVALID_REQUEST")
            return
        moves = {partition: replicas}
        self._run(lambda zk_client: zk_client.create_partition_reassignment(moves), done)

    def elect_preferred(self, partitions: tuple[TopicPartition, ...] | None, done: Done) -> None:
        """`/admin/preferred_replica_election`, with all partitions unless some are named."""

        async def create(zk_client: KafkaZkClient) -> Code:
            named = partitions
            if named is None:
                topics = await zk_client.get_all_topics(register_watch=False)
                named = tuple(await zk_client.get_full_replica_assignment_for_topics(topics))
            return await zk_client.create_preferred_replica_election(named)

        self._run(create, done)

    def delete_controller(self, done: Done) -> None:
        """`/controller` goes, whatever its version and whoever owns it."""

        async def delete(zk_client: KafkaZkClient) -> Code:
            return (await zk_client.one(Delete(paths.CONTROLLER, MATCH_ANY_VERSION))).code

        self._run(delete, done)

    def _run(self, command: Callable[[KafkaZkClient], Awaitable[Code]], done: Done) -> None:
        if self._service is None:
            self._service = self._world.service_for(TOOL)
        process = self._kernel.process(TOOL)
        config = KafkaConfig.of(self._profile.values, {})
        context = BrokerContext(NOBODY, self._kernel, process, config, self._profile)
        process.spawn("main", self._carry_out(context, self._service, command, done))

    async def _carry_out(
        self,
        context: BrokerContext,
        service: Service,
        command: Callable[[KafkaZkClient], Awaitable[Code]],
        done: Done,
    ) -> None:
        """The result is ZooKeeper's; NONE when the znode was created."""
        client = ZooKeeperClient(
            service,
            KernelThreads(context),
            TraceProbe(context),
            name=TOOL,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            max_in_flight=1,
        )
        try:
            await client.wait_until_connected(SESSION_TIMEOUT_MS)
            code = await command(KafkaZkClient(client, self._world.wall_ms))
        except ZooKeeperError as error:
            code = error.code
        client.close()
        done("NONE" if code is Code.OK else code.name)
