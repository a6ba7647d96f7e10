"""Clients of an emulated cluster, as actions start and stop them (scenario.actions.base.Clients).

Requests go to the controller or to a broker. If the cluster's version has no request for an
operation, it is done as Kafka's tools did it at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.kafka.broker.delete_records import HIGH_WATERMARK
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
    LiveBroker,
)
from emulator.kernel.scheduler import Kernel
from emulator.scenario.actions.admin import (
    AddPartitions,
    BrokerConfig,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    PreferredElection,
    Reassign,
    TopicConfig,
    UncleanElection,
)
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.clients import Consume, Produce, Send
from emulator.scenario.actions.delete_controller import DeleteController
from emulator.scenario.capabilities import Capabilities
from emulator.scenario.schema import Scenario
from emulator.trace import events
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.clients import Administrator, Bootstrap, ClientNetwork, Consumer
from emulator.worlds.clients.producer import Producer, ProducerSettings
from emulator.worlds.clients.znode_commands import CommandZnodes
from emulator.worlds.services import WorldServices

DELETION_PATIENCE_MS = 1000
"""As the clients of recordings: a deletion may never end, and other requests wait behind this."""


class AnyClient(Capabilities):
    """Everything that any emulated client supports."""

    admin = produce = consume = stop_clients = Capabilities.supported


class EmulatedClients:
    """All clients of one run, on its kernel."""

    def __init__(
        self,
        scenario: Scenario,
        kernel: Kernel,
        network: ClientNetwork,
        brokers: Sequence[LiveBroker],
        services: WorldServices,
    ) -> None:
        """`brokers` are the clients' bootstrap servers."""
        self._scenario, self._kernel, self._services = scenario, kernel, services
        self._bootstrap = Bootstrap(kernel, network, list(brokers))
        self._administrator = Administrator(
            self._bootstrap,
            kernel.process("admin"),
            remembers_controller=scenario.remembers_controller,
        )
        self._commands = CommandZnodes(kernel, scenario.running(), services)
        self._producers: list[Producer] = []
        self._consumers = 0

    def admin(self, request: Action) -> None:
        # The action's own event: the result refers to it, no matter how much later it arrives.
        done = self._returned(self._kernel.cause)
        if not self._run_tool(request, done):
            self._send_request(request, done)

    def _run_tool(self, request: Action, done: Callable[[str], object]) -> bool:
        """If the cluster's version has no request for it, do it as Kafka's tools did; False if it
        has one."""
        knows = self._scenario.running().request_versions
        match request:
            case CreateTopic() if "CreateTopics" not in knows:
                self._commands.create_topic(request, done)
            case AddPartitions() if "CreatePartitions" not in knows:
                self._commands.add_partitions(request, done)
            case DeleteTopic(topic) if "DeleteTopics" not in knows:
                self._commands.delete_topic(topic, done)
            case TopicConfig(topic, config) if "AlterConfigs" not in knows:
                self._commands.alter_config("topics", topic, config, done)
            case BrokerConfig(broker, config) if "AlterConfigs" not in knows:
                self._commands.alter_config("brokers", str(broker), config, done)
            case DeleteRecords() if "DeleteRecords" not in knows:
                # There was no tool for it either.
                done(Errors.UNSUPPORTED_VERSION.name)
            case Reassign(topic, partition, replicas) if (
                "AlterPartitionReassignments" not in knows or request.through == "znode"
            ):
                self._commands.reassign(TopicPartition(topic, partition), replicas, done)
            case PreferredElection(partitions) if (
                "ElectLeaders" not in knows or request.through == "znode"
            ):
                self._commands.elect_preferred(_named(partitions), done)
            case DeleteController():
                self._commands.delete_controller(done)
            case _:
                return False
        return True

    def _send_request(self, request: Action, done: Callable[[str], object]) -> None:
        """Send an admin request to the controller, or to one broker."""
        match request:
            case CreateTopic(topic, assignment, config, partitions, factor):
                create = CreateTopicsRequest(
                    topic,
                    assignment,
                    tuple(config.items()),
                    num_partitions=partitions,
                    replication_factor=factor,
                )
                self._administrator.ask_controller(create, done)
            case TopicConfig(topic, config):
                alter = AlterConfigsRequest("topics", topic, tuple(config.items()))
                self._administrator.alter_configs(alter, None, done)
            case BrokerConfig(broker, config):
                alter = AlterConfigsRequest("brokers", str(broker), tuple(config.items()))
                self._administrator.alter_configs(alter, broker, done)
            case AddPartitions(topic, assignment, count):
                more = CreatePartitionsRequest(topic, assignment, count=count)
                self._administrator.ask_controller(more, done, after_metadata=True)
            case DeleteTopic(topic):
                delete = DeleteTopicsRequest(topic, DELETION_PATIENCE_MS)
                self._administrator.ask_controller(delete, done)
            case DeleteRecords(topic, partitions, before):
                offset = HIGH_WATERMARK if before is None else before
                self._administrator.delete_records(
                    [(TopicPartition(topic, n), offset) for n in partitions], done
                )
            case Reassign(topic, partition, replicas):
                targets = ((TopicPartition(topic, partition), replicas),)
                reassign = AlterPartitionReassignmentsRequest(targets)
                self._administrator.ask_controller(reassign, done, after_metadata=True)
            case PreferredElection(partitions):
                elect = ElectLeadersRequest(_named(partitions))
                self._administrator.ask_controller(elect, done)
            case UncleanElection(partitions):
                elect = ElectLeadersRequest(_named(partitions), ElectionType.UNCLEAN)
                self._administrator.ask_controller(elect, done)
            case _:
                raise AssertionError(f"no client can send {request.name}")

    def _returned(self, of: int) -> Callable[[str], object]:
        return lambda result: self._kernel.emit(events.ActionReturned, 0, of, result)

    def produce(self, request: Action) -> None:
        assert isinstance(request, Produce | Send)
        name = f"producer-{len(self._producers) + 1}"
        producer = Producer(
            name,
            self._bootstrap,
            self._kernel.process(name),
            [TopicPartition(request.topic, n) for n in request.partitions],
            ProducerSettings(request.acks, request.record_bytes, request.client),
            self._services.client_start_us(name),
            self._services.client_draw,
        )
        self._producers.append(producer)
        if isinstance(request, Produce):
            jitter = self._services.handover_jitter_us
            producer.start(request.rate, request.batch, lambda: jitter(name))
        else:
            for _ in range(request.records):
                producer.hand_over(1)

    def consume(self, request: Action) -> None:
        assert isinstance(request, Consume)
        for partition in request.partitions:
            self._consumers += 1
            name = f"consumer-{self._consumers}"
            process = self._kernel.process(name)
            read = TopicPartition(request.topic, partition)
            Consumer(name, self._bootstrap, process, read, request.rack)

    def stop_clients(self, topic: str, acks: str | None) -> None:
        for producer in self._producers:
            if producer.partitions[0].topic == topic and acks in (None, producer.settings.acks):
                producer.stop()


def _named(
    partitions: tuple[tuple[str, int], ...] | None,
) -> tuple[TopicPartition, ...] | None:
    return None if partitions is None else tuple(TopicPartition(t, n) for t, n in partitions)
