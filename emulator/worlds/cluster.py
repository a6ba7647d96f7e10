"""A cluster in a world: brokers that boot, stimuli that are carried out, clients that come and go.

The same in virtual and in live time; what differs (the ZooKeeper service, its faults) comes in
through `Surroundings`. Implements `scenario.actions.base.World`. Knows no scenario by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import msgspec

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.node import Broker
from emulator.kafka.profiles.base import Profile
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
from emulator.kernel.holds import Holds, Place
from emulator.kernel.scheduler import Kernel, Process
from emulator.scenario.actions.admin import (
    AddPartitions,
    BrokerConfig,
    CreateTopic,
    DeleteTopic,
    PreferredElection,
    Reassign,
    TopicConfig,
    UncleanElection,
)
from emulator.scenario.actions.base import Stimulus, Ways
from emulator.scenario.actions.clients import Consume, Produce, Send
from emulator.scenario.actions.delete_controller import DeleteController
from emulator.scenario.errors import UserError
from emulator.scenario.schema import Scenario
from emulator.trace import events
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.clients import Administrator, Bootstrap, ClientNetwork, Consumer
from emulator.worlds.clients.producer import Producer, ProducerSettings
from emulator.worlds.clients.znode_commands import CommandZnodes
from emulator.worlds.network.links import Stream, Way
from emulator.worlds.network.memory import Break, Listener, MemoryNetwork
from zk.wire import Service, When, labelled
from zk.wire import Way as ZkWay

HOST = "127.0.0.1"
FIRST_PORT = 19000
ZOOKEEPER = "zookeeper"
_ZOOKEEPER_WAYS: dict[str, tuple[ZkWay, ...]] = {
    "both": (ZkWay.TO_SERVER, ZkWay.TO_CLIENT),
    "to_peer": (ZkWay.TO_SERVER,),
    "from_peer": (ZkWay.TO_CLIENT,),
}


class Surroundings(Protocol):
    """What a world gives a cluster beside the kernel and the network."""

    def service_for(self, client: str) -> Service:
        """ZooKeeper as this process (`broker-1`) reaches it."""
        ...

    def wall_ms(self) -> int:
        """For time stamps inside znodes."""
        ...

    def pause_process(self, process: Process) -> None: ...

    def resume_process(self, process: Process) -> None: ...

    def pause_zookeeper(self) -> None: ...

    def resume_zookeeper(self) -> None: ...

    def stop_zookeeper(self) -> None: ...

    def start_zookeeper(self) -> None: ...

    def expire_session(self, client: str) -> None: ...

    def forget_session(self, client: str) -> None: ...

    def end_session(self, client: str) -> None: ...

    def drop_connection(self, client: str, when: When, op: str | None, count: int) -> None: ...

    def cut_zookeeper(self, client: str, ways: tuple[ZkWay, ...]) -> None: ...

    def heal_zookeeper(self, client: str) -> None: ...

    def delay_zookeeper(self, client: str, delay_ms: int) -> None: ...

    def disturb_zookeeper(self, client: str, drawn_us: Callable[[ZkWay], int]) -> None: ...

    def chance_of(self, purpose: str, actor: str) -> Callable[[], Stream]:
        """Where the draws for a purpose of an actor come from."""
        ...

    def client_start_us(self, client: str) -> int:
        """How long a new client needs to get going."""
        ...

    def draw_assignment(self, below: int) -> int:
        """A number below another, for a topic whose replicas nobody chose."""
        ...

    def handover_jitter_us(self, producer: str) -> int:
        """How late a producer's driver hands a record over."""
        ...

    def client_draw(self, purpose: str, actor: str) -> int:
        """See emulator.worlds.clients.producer.Draw."""
        ...


class Cluster:
    """All brokers and clients of one run."""

    def __init__(
        self,
        scenario: Scenario,
        kernel: Kernel,
        network: MemoryNetwork,
        surroundings: Surroundings,
    ) -> None:
        self._scenario = scenario
        self._installed: dict[int, Profile] = {}
        self.kernel, self.network, self._surroundings = kernel, network, surroundings
        self.brokers: dict[int, Broker] = {}
        self._disks: dict[int, Disk] = {}
        self._clients: list[Producer] = []
        self._consumers = 0
        self.on_start: Callable[[int, int | None], object] = labelled("on_start")(
            lambda broker, _: self.start(broker)
        )
        ids = [boot.broker for boot in scenario.boots]
        live = [LiveBroker(b, HOST, FIRST_PORT + b) for b in ids]
        self.reach_through(network, live)
        self._commands = CommandZnodes(kernel, scenario.running(), surroundings)

    def reach_through(self, network: ClientNetwork, brokers: list[LiveBroker]) -> None:
        """How clients reach the cluster, and whom they ask first."""
        self._bootstrap = Bootstrap(self.kernel, network, brokers)
        self._admin = Administrator(self._bootstrap, self.kernel.process("admin"))

    # -- brokers ----------------------------------------------------------------------------------

    @labelled("start")
    def start(self, broker: int, not_before_us: Mapping[str, int] | None = None) -> Broker:
        """Launch a broker's process; `not_before_us` holds steps of its boot back."""
        process = self.kernel.process(f"broker-{broker}")
        process.on_death = self.network.process_died
        settings = {**self._scenario.settings, **self._scenario.broker_settings.get(broker, {})}
        profile = self._installed.setdefault(broker, self._scenario.running(broker))
        config = KafkaConfig.of(profile.values, settings)
        context = BrokerContext(broker, self.kernel, process, config, profile)
        node = Broker(
            context,
            self._surroundings.service_for(process.name),
            self.network,
            self._disks.setdefault(broker, Disk(config.log_directories)),
            host=HOST,
            port=FIRST_PORT + broker,
            wall_ms=self._surroundings.wall_ms,
            draw=self._surroundings.draw_assignment,
            not_before_us=not_before_us,
        )
        listener = Listener(process, config.num_network_threads, node.receive)
        self.network.listen(FIRST_PORT + broker, listener)
        self.brokers[broker] = node
        node.start()
        return node

    @property
    def is_up(self) -> bool:
        """Every broker has started, and every metadata cache knows all of them."""
        return len(self.brokers) == len(self._scenario.boots) and all(
            node.started and all(node.metadata_cache.alive_broker(b) for b in self.brokers)
            for node in self.brokers.values()
        )

    def close(self) -> None:
        """Sessions are closed; nothing else runs any more."""
        for node in self.brokers.values():
            if node.context.process.state != "dead":
                node.close()

    # -- stimuli ----------------------------------------------------------------------------------

    @labelled("apply")
    def apply(self, stimulus: Stimulus) -> None:
        """Note a stimulus on the trace, and carry it out."""
        self.kernel.current, self.kernel.cause = None, -1
        broker = getattr(stimulus, "broker", None) or 0
        self.kernel.emit(events.Stimulus, broker, stimulus.name, stimulus.parameters)
        stimulus.apply(self)

    def _process(self, broker: int) -> Process:
        return self.brokers[broker].context.process

    def pause(self, target: int | str) -> None:
        if isinstance(target, str):
            self._surroundings.pause_zookeeper()
        else:
            process, was = self._process(target), self._process(target).state
            self._surroundings.pause_process(process)
            if process.state == "paused" != was:
                self.brokers[target].note_pause()

    def resume(self, target: int | str) -> None:
        if isinstance(target, str):
            self._surroundings.resume_zookeeper()
        else:
            process = self._process(target)
            if process.state == "paused":
                self.brokers[target].note_resume()
            self._surroundings.resume_process(process)

    def kill(self, broker: int) -> None:
        node = self.brokers[broker]
        node.crash()

    def lose_from_disk(self, broker: int, what: str) -> None:
        self._disks[broker].lose(what)

    def fail_log_dir(self, broker: int, directory: int) -> None:
        self._disks[broker].directories[directory].failed = True

    def repair_log_dir(self, broker: int, directory: int) -> None:
        self._disks[broker].directories[directory].failed = False

    def terminate(self, broker: int) -> None:
        self.brokers[broker].terminate()

    def install(self, broker: int, profile: str, propagation: str) -> None:
        scenario, has = self._scenario, self._installed[broker]
        runs = scenario.running(broker, profile or has.name)
        self._installed[broker] = runs.altered({}, propagation) if propagation else runs

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """Two processes of one broker at a time are nobody's wish: one that is about to end is
        followed by the next when it has."""
        node = self.brokers[broker]
        process = node.context.process
        if process.state == "dead":
            self.on_start(broker, registered_ms)
        elif node.shutting_down:
            process.on_death = partial(self._started_when_dead, broker, registered_ms)
        else:
            raise UserError(f"start: broker {broker} runs already")

    def runs(self, broker: int) -> bool:
        node = self.brokers[broker]
        return node.context.process.state != "dead" and not node.shutting_down

    def _started_when_dead(self, broker: int, registered_ms: int | None, process: Process) -> None:
        self.network.process_died(process)
        self.kernel.world.lane("world").post(partial(self.on_start, broker, registered_ms))

    def cut(self, broker: int, peer: int | str, ways: Ways = "both") -> None:
        if isinstance(peer, str):
            self._surroundings.cut_zookeeper(f"broker-{broker}", _ZOOKEEPER_WAYS[ways])
            return
        for a, b in directions(broker, peer, ways):
            self.network.cut(a, b)

    def heal(self, broker: int, peer: int | str) -> None:
        if isinstance(peer, str):
            self._surroundings.heal_zookeeper(f"broker-{broker}")
        else:
            self.network.heal(f"broker-{broker}", f"broker-{peer}")

    def expire_session(self, broker: int) -> None:
        self._surroundings.expire_session(f"broker-{broker}")

    def forget_session(self, broker: int) -> None:
        self._surroundings.forget_session(f"broker-{broker}")

    def end_session(self, broker: int) -> None:
        self._surroundings.end_session(f"broker-{broker}")

    def fail_authentication(self, broker: int) -> None:
        client = self.brokers[broker].zk
        if client is not None and self.runs(broker):
            client.fail_authentication()

    def stop_zookeeper(self) -> None:
        self._surroundings.stop_zookeeper()

    def start_zookeeper(self) -> None:
        self._surroundings.start_zookeeper()

    def strike_server(self, server: str, what: str) -> None:
        raise UserError(f"{what} {server}: there is one ZooKeeper server here")

    def unplug(self, broker: int) -> None:
        for peer in self._others(broker):
            self.cut(broker, peer)

    def plug_in(self, broker: int) -> None:
        for peer in self._others(broker):
            self.heal(broker, peer)

    def _others(self, broker: int) -> list[int | str]:
        """All that it talks to."""
        brokers = [boot.broker for boot in self._scenario.boots if boot.broker != broker]
        return [*brokers, ZOOKEEPER]

    def drop_connection(self, broker: int, when: When, op: str | None, count: int) -> None:
        self._surroundings.drop_connection(f"broker-{broker}", when, op, count)

    def delay(self, broker: int, peer: int | str, delay_ms: int) -> None:
        if isinstance(peer, str):
            self._surroundings.delay_zookeeper(f"broker-{broker}", delay_ms)
        else:
            self.network.delay(f"broker-{broker}", f"broker-{peer}", delay_ms * 1000)

    def link_latency(
        self, broker: int, peer: int | str, ways: Ways, times_ms: tuple[int, int, int]
    ) -> None:
        low, typical, high = (ms * 1000 for ms in times_ms)
        changes = {"low_us": low, "typical_us": typical, "high_us": high}
        self._disturb(broker, peer, ways, changes)

    def lose(self, broker: int, peer: int | str, ways: Ways, loss: float) -> None:
        self._disturb(broker, peer, ways, {"loss": loss})

    def _disturb(
        self, broker: int, peer: int | str, ways: Ways, changes: Mapping[str, float]
    ) -> None:
        for a, b in directions(broker, peer, ways):
            way = self.network.way(a, b)
            manners = msgspec.structs.replace(way.manners, **changes)
            way.behave(manners, self._surroundings.chance_of("link", f"{a}>{b}"))
        (a, b), (_, _) = directions(broker, peer, "both")
        self.disturbed(broker, peer, self.network.way(a, b), self.network.way(b, a))

    def disturbed(self, broker: int, peer: int | str, there: Way, back: Way) -> None:
        """Both ways behave as they were told to: messages in memory ask them, the link to
        ZooKeeper does not."""
        if peer == ZOOKEEPER:
            by_way = {ZkWay.TO_SERVER: there.drawn_us, ZkWay.TO_CLIENT: back.drawn_us}
            self._surroundings.disturb_zookeeper(f"broker-{broker}", lambda way: by_way[way]())

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None:
        for a, b in directions(broker, peer, ways):
            self.network.way(a, b).narrow(bytes_per_s)

    def break_connection(
        self, broker: int, peer: int, when: When, request: str | None, late_ms: int, count: int
    ) -> None:
        how = Break(when, request, late_ms * 1000)
        self.network.break_connections(f"broker-{broker}", f"broker-{peer}", how, count)

    def limit_bandwidth(self, broker: int, bytes_per_s: int) -> None:
        self.network.limit_bandwidth(f"broker-{broker}", bytes_per_s)

    def slow_disk(self, broker: int, ms_per_append: int) -> None:
        self._disks[broker].ms_per_append = ms_per_append

    def hold(self, place: Place) -> None:
        if self.kernel.holds is None:
            self.kernel.holds = Holds(self.kernel)
        self.kernel.holds.order(place)

    def release(self, place: Place) -> None:
        if self.kernel.holds is None or not self.kernel.holds.release(place):
            raise UserError(f"release: nothing was to be held {place.words}")

    def admin(self, request: Stimulus) -> None:
        done = self._returned(self.kernel.cause)
        if not self._through_a_tool(request, done):
            self._ask(request, done)

    def _through_a_tool(self, request: Stimulus, done: Callable[[str], object]) -> bool:
        """Where the cluster's version has no request for it, as tools did it then; False: it has
        one."""
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

    def _ask(self, request: Stimulus, done: Callable[[str], object]) -> None:
        """A client's request to the controller, or to one broker."""
        match request:
            case CreateTopic(topic, assignment, config, partitions, factor):
                create = CreateTopicsRequest(
                    topic,
                    assignment,
                    tuple(config.items()),
                    num_partitions=partitions,
                    replication_factor=factor,
                )
                self._admin.ask_controller(create, done)
            case TopicConfig(topic, config):
                alter = AlterConfigsRequest("topics", topic, tuple(config.items()))
                self._admin.alter_configs(alter, None, done)
            case BrokerConfig(broker, config):
                alter = AlterConfigsRequest("brokers", str(broker), tuple(config.items()))
                self._admin.alter_configs(alter, broker, done)
            case AddPartitions(topic, assignment, count):
                more = CreatePartitionsRequest(topic, assignment, count=count)
                self._admin.ask_controller(more, done)
            case DeleteTopic(topic):
                self._admin.ask_controller(DeleteTopicsRequest(topic), done)
            case Reassign(topic, partition, replicas):
                targets = ((TopicPartition(topic, partition), replicas),)
                self._admin.ask_controller(AlterPartitionReassignmentsRequest(targets), done)
            case PreferredElection(partitions):
                elect = ElectLeadersRequest(_named(partitions))
                self._admin.ask_controller(elect, done)
            case UncleanElection(partitions):
                elect = ElectLeadersRequest(_named(partitions), ElectionType.UNCLEAN)
                self._admin.ask_controller(elect, done)
            case _:
                raise AssertionError(f"no client can send {request.name}")

    def _returned(self, of: int) -> Callable[[str], object]:
        return lambda result: self.kernel.emit(events.StimulusReturned, 0, of, result)

    def produce(self, request: Stimulus) -> None:
        assert isinstance(request, Produce | Send)
        name = f"producer-{len(self._clients) + 1}"
        producer = Producer(
            name,
            self._bootstrap,
            self.kernel.process(name),
            [TopicPartition(request.topic, n) for n in request.partitions],
            ProducerSettings(request.acks, request.record_bytes, request.client),
            self._surroundings.client_start_us(name),
            self._surroundings.client_draw,
        )
        self._clients.append(producer)
        if isinstance(request, Produce):
            jitter = self._surroundings.handover_jitter_us
            producer.start(request.rate, request.batch, lambda: jitter(name))
        else:
            for _ in range(request.records):
                producer.hand_over(1)

    def consume(self, request: Stimulus) -> None:
        assert isinstance(request, Consume)
        for partition in request.partitions:
            self._consumers += 1
            name = f"consumer-{self._consumers}"
            process = self.kernel.process(name)
            Consumer(name, self._bootstrap, process, TopicPartition(request.topic, partition))

    def stop_clients(self, topic: str, acks: str | None) -> None:
        for producer in self._clients:
            if producer.partitions[0].topic == topic and acks in (None, producer.settings.acks):
                producer.stop()


def directions(broker: int, peer: int | str, ways: Ways) -> list[tuple[str, str]]:
    """From whom to whom, by name."""
    here, there = f"broker-{broker}", peer if isinstance(peer, str) else f"broker-{peer}"
    both = {"to_peer": (here, there), "from_peer": (there, here)}
    return list(both.values()) if ways == "both" else [both[ways]]


def _named(
    partitions: tuple[tuple[str, int], ...] | None,
) -> tuple[TopicPartition, ...] | None:
    return None if partitions is None else tuple(TopicPartition(t, n) for t, n in partitions)
