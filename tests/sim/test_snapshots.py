"""The trace state at a moment equals the brokers' memory: derived from the trace alone, and
compared with the objects after every action of whole runs.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from emulator.conformance.actions import scenario_of
from emulator.conformance.recording import read_recording
from emulator.kafka.node import Broker
from emulator.runs.play import Run
from emulator.scenario.load import loads
from emulator.scenario.schema import Scenario
from emulator.trace.sink import Sink
from emulator.trace.state import TraceState
from emulator.trace.state.replicas import LEADER, OFFLINE
from emulator.trace.values import TopicPartition
from emulator.worlds.emulated_host import nodes_of
from emulator.worlds.simulated import SimulatedWorld
from tests.sim.shipped_runs import scenario
from zk import paths as zk_paths
from zk.client.codec import decode_state
from zk.model.tree import Tree

RECORDINGS = Path(__file__).parents[1] / "recordings" / "kafka-2.6.3"
RECORDED = (
    "bounce-unseen",
    "controlled-shutdown",
    "leader-crash",
    "leader-loses-zookeeper",
    "reassignment-grow",
    "shrink-expand-many",
    "topic-lifecycle",
    "unclean-election",
)
WRITTEN = """\
cluster: {first: 3, config: {zookeeper.session.timeout.ms: 6000, replica.lag.time.max.ms: 2000}}
topics: {orders: {partitions: [[1, 2, 3], [2, 3, 1], [3, 1, 2]]}}
workload: [{produce: orders, rate: 10, acks: all, from: 1s, until: 25s}]
faults:
  - {at: 3s, fail_log_dir: {broker: 2}}
  - {at: 8s, crash: {broker: 1, lose: unflushed}, for: 9s}
  - {at: 20s, expire_session: {broker: 3}}
  - {at: 22s, terminate: {broker: 1}}
run: 30s
"""
SHIPPED = ("controller-failover", "min-isr", "partition-starvation", "zombie-controller")
UNKNOWN = -1


def scenario_named(name: str) -> Scenario:
    if name == "written":
        return loads(WRITTEN, name)
    return scenario(name) if name in SHIPPED else scenario_of(read_recording(RECORDINGS / name))


@pytest.mark.parametrize("name", ["written", *RECORDED, *SHIPPED])
def test_after_every_action_it_is_what_the_brokers_have_in_memory(name: str) -> None:
    sink = Sink()
    state = TraceState()
    sink.listen(state)
    with closing(SimulatedWorld(scenario_named(name), 1, sink)) as world:
        run = Run(world)
        run.bring_up()
        looked = 0
        while not run.over:
            run.next_segment()
            assert_znodes(state, world)
            for broker, node in nodes_of(world.cluster).items():
                assert_broker(state, broker, node)
                looked += 1
    assert looked >= 9


def assert_znodes(state: TraceState, world: SimulatedWorld) -> None:
    tree = world.ensemble.tree
    named = ((zk_paths.partition_of_state_path(path), path) for path in tree.paths())
    paths = {TopicPartition(*name): path for name, path in named if name is not None}
    znodes = {name: one.in_zookeeper for name, one in state.partitions.all.items()}
    assert sorted(name for name, znode in znodes.items() if znode) == sorted(paths)
    assignments = state.znodes.assignments()
    for name, path in paths.items():
        node, ours = tree.node(path), znodes[name]
        assert node is not None and node.data is not None and ours is not None
        theirs = decode_state(path, node.data, node.version)
        it = theirs.leader_and_isr
        assert (ours.leader, ours.leader_epoch, ours.isr) == (it.leader, it.leader_epoch, it.isr)
        assert (ours.version, ours.controller_epoch) == (node.version, theirs.controller_epoch)
        assert assignments[name] == decode_topic_replicas(tree, name)
    registered = [path for path in tree.paths() if path.startswith("/brokers/ids/")]
    assert state.znodes.below("/brokers/ids") == sorted(registered)


def decode_topic_replicas(tree: Tree, name: TopicPartition) -> tuple[int, ...]:
    node = tree.node(f"/brokers/topics/{name.topic}")
    assert node is not None and node.data is not None
    partitions: dict[str, list[int]] = json.loads(node.data)["partitions"]
    return tuple(partitions[str(name.partition)])


def assert_broker(state: TraceState, broker: int, node: Broker) -> None:
    process = node.context.process
    dead = process.state == "dead" or node.exited
    ours = state.processes.state(broker)
    assert (ours == "dead") == dead
    if dead:
        return
    assert (ours == "paused") == (process.state == "paused")
    cache = node.metadata_cache
    assert state.metadata.shown(broker) == cache._partitions
    assert state.metadata.live_brokers(broker) == tuple(cache._brokers)
    assert_replicas(state, broker, node)
    assert_fetchers(state, broker, node)
    controller = node.controller
    if controller is not None and not node.shutting_down:  # shutdown() leaves activeControllerId
        assert (broker in state.controller.epochs) == controller.is_active


def assert_replicas(state: TraceState, broker: int, node: Broker) -> None:
    manager = node.replica_manager
    hosted = manager.partitions if manager is not None else {}
    online = {name: it for name, it in hosted.items() if it.leader_replica_id is not None}
    replicas = state.replicas.serving(broker)
    serving = [name for name, ours in replicas.items() if ours.role != OFFLINE]
    assert serving == sorted(online)
    for name, it in online.items():
        ours = replicas[name]
        assert (ours.role == LEADER) == it.is_leader
        assert ours.leader == it.leader_replica_id
        assert (ours.leader_epoch, ours.zk_version) == (it.leader_epoch, it.zk_version)
        assert it.log is not None
        levels = it.log.log_end_offset, it.log.high_watermark
        assert state.water_levels.now(name, broker) == levels
        if it.is_leader:
            assert ours.isr == it.isr
            sees = {r.broker: r.log_end_offset for r in it.remotes.values()}
            known = {follower: leo for follower, leo in sees.items() if leo != UNKNOWN}
            assert {b: leo for b, leo in ours.follower_leos.items() if b in sees} == known


def assert_fetchers(state: TraceState, broker: int, node: Broker) -> None:
    manager = node.replica_manager
    threads = manager.fetchers.threads if manager is not None and manager.fetchers else {}
    ours = state.fetches.threads.get(broker, {})
    assert sorted(ours) == sorted(threads)
    for key, thread in threads.items():
        offsets = ours[key].offsets
        assert set(offsets) <= set(thread.partitions)
        fetching = [name for name, one in thread.partitions.items() if not one.truncating]
        assert all(name in offsets for name in fetching)
