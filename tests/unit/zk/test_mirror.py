"""A mirror of Kafka's znodes finally equals them, whatever happens to them or to its session."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.zk.virtual_lane import VirtualLane
from tests.unit.zk.world import Client, World
from zk import paths
from zk.client.codec import ReplicaAssignment, encode_topic
from zk.ops import Create, Delete, GetChildren, GetData, SetData
from zk.real.mirror import PARENTS, SINGLE, Mirror

SESSION_MS = 3000
NOTIFICATION = paths.isr_change_notification_sequence("0000000001")


class Stage:
    """A modelled service, a writer, and the mirror."""

    def __init__(self) -> None:
        self.world = World()
        self.writer = self.world.client("writer", 60_000)
        for path in ("/brokers", "/admin", *PARENTS):
            self.write(Create(path, b""))
        self.changed = 0
        lane = VirtualLane(self.world.clock)
        self.mirror = Mirror(self.world.service, lane, SESSION_MS, self._on_change)
        self.settle()

    def _on_change(self) -> None:
        self.changed += 1

    def write(self, *requests: object) -> None:
        for request in requests:
            self.writer.ask(request)  # type: ignore[arg-type]

    def settle(self, for_ms: int = 10_000) -> None:
        self.world.run_ms(for_ms)

    def topic(self, name: str, *partitions: int) -> None:
        assignment = {n: ReplicaAssignment((1, 2)) for n in partitions}
        self.write(Create(paths.topic(name), encode_topic(assignment)))
        self.write(Create(paths.topic_partitions(name), b""))
        for n in partitions:
            self.write(Create(paths.topic_partition(name, n), b""))
            self.write(Create(paths.topic_partition_state(name, n), b"0"))

    def truth(self) -> dict[str, bytes]:
        """The znodes as a new reader sees them."""
        reader = Client(self.world, "reader", 60_000)
        self.world.run_ms(100)
        wanted = list(SINGLE)
        for parent, with_data in PARENTS.items():
            names = reader.ask(GetChildren(parent)).children if with_data else ()
            wanted += [f"{parent}/{name}" for name in names]
            if parent == paths.TOPICS:
                wanted += [paths.topic_partition_state(name, n) for name in names for n in range(3)]
        replies = {path: reader.ask(GetData(path)) for path in wanted}
        return {path: it.data or b"" for path, it in replies.items() if it.stat is not None}

    def copy(self) -> dict[str, bytes]:
        return {path: node.data for path, node in self.mirror.nodes.items()}


def test_what_is_there_before_and_what_comes_after_is_seen() -> None:
    stage = Stage()
    assert (stage.mirror.complete, stage.copy()) == (True, {})
    stage.write(Create(paths.CONTROLLER, b"1"), Create(paths.broker_id(1), b"b"))
    stage.topic("orders", 0, 1)
    stage.write(Create(NOTIFICATION, b"n"))
    stage.settle()
    state = paths.topic_partition_state("orders", 1)
    assert {paths.CONTROLLER, paths.broker_id(1), state, NOTIFICATION} <= stage.copy().keys()
    assert stage.copy() == stage.truth()


def test_a_state_that_is_made_long_after_its_topic_is_waited_for() -> None:
    stage = Stage()
    stage.write(Create(paths.topic("late"), encode_topic({0: ReplicaAssignment((1,))})))
    stage.settle()
    state = paths.topic_partition_state("late", 0)
    assert state not in stage.copy()
    stage.write(Create(paths.topic_partitions("late"), b""))
    stage.write(Create(paths.topic_partition("late", 0), b""), Create(state, b"made"))
    stage.settle()
    assert stage.copy()[state] == b"made"


def test_versions_tell_what_was_not_seen_between_two_reads() -> None:
    stage = Stage()
    stage.topic("orders", 0)
    stage.settle()
    state = paths.topic_partition_state("orders", 0)
    stage.world.service.cut("mirror")
    for n in range(3):
        stage.write(SetData(state, b"%d" % n))
    stage.world.service.heal("mirror")
    stage.settle()
    assert stage.mirror.nodes[state].stat.version == 3


def test_after_an_expiry_it_begins_anew() -> None:
    stage = Stage()
    stage.topic("orders", 0)
    stage.settle()
    stage.world.service.cut("mirror")
    stage.settle(3 * SESSION_MS)
    stage.write(Delete(paths.topic_partition_state("orders", 0)), Create(paths.CONTROLLER, b"2"))
    stage.world.service.heal("mirror")
    stage.settle()
    assert stage.mirror.complete
    assert stage.copy() == stage.truth()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(SINGLE), st.binary(max_size=2)),
        st.tuples(st.just("delete"), st.sampled_from((*SINGLE, NOTIFICATION))),
        st.tuples(st.just("broker"), st.integers(1, 3)),
        st.tuples(st.just("gone"), st.integers(1, 3)),
        st.tuples(st.just("topic"), st.sampled_from("ab")),
        st.tuples(st.just("state"), st.sampled_from("ab"), st.integers(0, 2)),
        st.tuples(st.just("cut"), st.integers(1, 3 * SESSION_MS)),
        st.tuples(st.just("wait"), st.integers(1, 20)),
    ),
    max_size=25,
)


@given(STEPS)
def test_whatever_happens_it_ends_up_as_znodes_are(steps: list[tuple[object, ...]]) -> None:
    stage = Stage()
    for step in steps:
        _do(stage, *step)
    stage.settle(4 * SESSION_MS)
    assert stage.mirror.complete
    assert stage.copy() == stage.truth()


def _do(stage: Stage, what: object, *with_: object) -> None:
    match what, *with_:
        case "write", str(path), bytes(data):
            stage.write(Create(path, b""), SetData(path, data))
        case "delete", str(path):
            stage.write(Delete(path))
        case ("broker" | "gone") as kind, int(broker):
            path = paths.broker_id(broker)
            stage.write(Create(path, b"%d" % broker) if kind == "broker" else Delete(path))
        case "topic", str(name):
            stage.topic(name, 0, 1, 2)
        case "state", str(name), int(n):
            stage.write(SetData(paths.topic_partition_state(name, n), b"s"))
        case "cut", int(ms):
            stage.world.service.cut("mirror")
            stage.settle(ms)
            stage.world.service.heal("mirror")
        case "wait", int(ms):
            stage.settle(ms)
