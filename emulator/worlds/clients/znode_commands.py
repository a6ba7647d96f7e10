"""Commands written directly into ZooKeeper, in a session that belongs to no broker.

The tools of Kafka's ZooKeeper era work this way: open a session, write, close the session. The
controller decides whether the command is carried out. Topics are created this way if brokers have
no request for it (up to 0.10.0). Sources: admin/ReassignPartitionsCommand.scala@2.6.3,
admin/LeaderElectionCommand.scala and its predecessor PreferredReplicaLeaderElectionCommand.scala,
admin/TopicCommand.scala and AdminUtils.scala@0.8.2.2; spec §1.9.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from emulator.kafka.broker.admin import added_partitions
from emulator.kafka.broker.assignment import assign_replicas_to_brokers
from emulator.kafka.broker.context import BrokerContext, KernelThreads, TraceProbe
from emulator.kafka.broker.zookeeper import client_version_of
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import KafkaError
from emulator.kafka.profiles.base import Profile
from emulator.kafka.protocol.messages import CreatePartitionsRequest
from emulator.kernel.scheduler import Kernel
from emulator.scenario.actions.admin import AddPartitions, CreateTopic
from emulator.trace.values import TopicPartition
from zk import paths
from zk.client.client import ZooKeeperClient
from zk.client.codec import ReplicaAssignment
from zk.client.kafka_zk_client import KafkaZkClient
from zk.client.zk_requests import MATCH_ANY_VERSION
from zk.errors import Code, ZooKeeperError
from zk.ops import Delete
from zk.wire import Service

TOOL = "tool"
SESSION_TIMEOUT_MS = 30_000
NOBODY = 0
Done = Callable[[str], object]


class ZooKeeperAccess(Protocol):
    """What a tool needs from its world."""

    def service_for(self, client: str) -> Service: ...

    def wall_ms(self) -> int: ...

    def draw_assignment(self, below: int) -> int: ...


class CommandZnodes:
    """The tool; each command has its own process."""

    def __init__(self, kernel: Kernel, profile: Profile, world: ZooKeeperAccess) -> None:
        self._kernel, self._profile, self._world = kernel, profile, world
        self._service: Service | None = None

    def reassign(
        self, partition: TopicPartition, replicas: tuple[int, ...] | None, done: Done
    ) -> None:
        """Write `/admin/reassign_partitions` with one partition; a reassignment cannot be cancelled
        this way."""
        if replicas is None:
            done("INVALID_REQUEST")
            return
        moves = {partition: replicas}
        self._run_tool(lambda zk_client: zk_client.create_partition_reassignment(moves), done)

    def elect_preferred(self, partitions: tuple[TopicPartition, ...] | None, done: Done) -> None:
        """Write `/admin/preferred_replica_election`, with all partitions unless some are named."""

        async def create(zk_client: KafkaZkClient) -> Code:
            named = partitions
            if named is None:
                topics = await zk_client.get_all_topics(register_watch=False)
                named = tuple(await zk_client.get_full_replica_assignment_for_topics(topics))
            return await zk_client.create_preferred_replica_election(named)

        self._run_tool(create, done)

    def delete_controller(self, done: Done) -> None:
        """Delete `/controller`, regardless of its version and owner. ZooKeeper's shell does not
        wait until it is connected: a refused connection fails its command."""

        async def delete(client: ZooKeeperClient) -> Code:
            request = Delete(paths.CONTROLLER, MATCH_ANY_VERSION)
            return (await client.handle_requests([request]))[0].code

        self._run(delete, done)

    def create_topic(self, request: CreateTopic, done: Done) -> None:
        """Write the configuration, then the topic's znode. Without an assignment, replicas are
        assigned over the registered brokers."""

        async def create(zk_client: KafkaZkClient) -> Code:
            topic, replicas = request.topic, request.assignment
            if not replicas:
                brokers = await zk_client.get_sorted_broker_list()
                first, shift = self._world.draw_assignment, self._world.draw_assignment
                replicas = assign_replicas_to_brokers(
                    brokers,
                    request.num_partitions,
                    request.replication_factor,
                    first(len(brokers)),
                    shift(len(brokers)),
                )
            if request.config:
                await zk_client.set_or_create_entity_configs(
                    "topics", request.topic, request.config
                )
            assignment = {n: ReplicaAssignment(r) for n, r in enumerate(replicas)}
            await zk_client.create_topic_assignment(topic, assignment)
            return Code.OK

        self._run_tool(create, done)

    def add_partitions(self, request: AddPartitions, done: Done) -> None:
        """Overwrite the topic's znode with its existing and the new partitions."""

        async def add(zk_client: KafkaZkClient) -> Code:
            brokers = await zk_client.get_sorted_broker_list()
            present = await zk_client.get_full_replica_assignment_for_topics([request.topic])
            create = CreatePartitionsRequest(request.topic, request.assignment, count=request.count)
            try:
                added = added_partitions(create, list(present.values()), brokers)
            except KafkaError:
                return Code.BAD_ARGUMENTS
            assignment = {p.partition: a for p, a in present.items()}
            assignment |= {len(present) + n: ReplicaAssignment(r) for n, r in enumerate(added)}
            # Regardless of the znode's version: of two simultaneous tools the last one wins, as
            # with Kafka's.
            await zk_client.add_partitions(request.topic, assignment)
            return Code.OK

        self._run_tool(add, done)

    def delete_topic(self, topic: str, done: Done) -> None:
        """Create the marker; without delete.topic.enable it has no effect."""
        self._run_tool(lambda zk_client: zk_client.create_delete_topic_path(topic), done)

    def alter_config(self, kind: str, entity: str, config: Mapping[str, str], done: Done) -> None:
        """Read, merge, write and announce the configuration."""

        async def alter(zk_client: KafkaZkClient) -> Code:
            merged = {**await zk_client.get_entity_configs(kind, entity), **config}
            await zk_client.set_or_create_entity_configs(kind, entity, merged)
            await zk_client.create_config_change_notification(f"{kind}/{entity}")
            return Code.OK

        self._run_tool(alter, done)

    def _run_tool(self, command: Callable[[KafkaZkClient], Awaitable[Code]], done: Done) -> None:
        """Kafka's own tools wait until they are connected."""

        async def connected(client: ZooKeeperClient) -> Code:
            await client.wait_until_connected(SESSION_TIMEOUT_MS)
            version = client_version_of(self._profile)
            return await command(KafkaZkClient(client, self._world.wall_ms, version))

        self._run(connected, done)

    def _run(self, command: Callable[[ZooKeeperClient], Awaitable[Code]], done: Done) -> None:
        if self._service is None:
            # Opened by the first command: a run without tools has no such session.
            self._service = self._world.service_for(TOOL)
        process = self._kernel.process(TOOL)
        config = KafkaConfig.of(self._profile.values, {})
        context = BrokerContext(NOBODY, self._kernel, process, config, self._profile)
        process.spawn("main", self._carry_out(context, self._service, command, done))

    async def _carry_out(
        self,
        context: BrokerContext,
        service: Service,
        command: Callable[[ZooKeeperClient], Awaitable[Code]],
        done: Done,
    ) -> None:
        """The result is ZooKeeper's code; NONE if the znode was created."""
        client = ZooKeeperClient(
            service,
            KernelThreads(context),
            TraceProbe(context),
            name=TOOL,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            max_in_flight=1,
        )
        try:
            code = await command(client)
        except ZooKeeperError as error:
            code = error.code
        client.close()
        done("NONE" if code is Code.OK else code.name)
