"""A cluster that a test controls, on the modelled ZooKeeper or on a real one.

    write = cluster.hold(1, "zookeeper", "setData", "/brokers/topics/orders")
    cluster.do("pause 2")
    write.wait()
    ...
    write.release()

Owns the interface of tests: they act through actions, and observe through the trace. It must not
decide anything that the cluster decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar, get_args

import msgspec

from emulator.kafka.broker.partition import Partition
from emulator.kafka.node import Broker
from emulator.kernel.holds import At
from emulator.runs.play import SIMULATED, PlayOptions
from emulator.runs.session import Listening, Session
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.clients import Send
from emulator.scenario.actions.hold import Hold, Release
from emulator.scenario.errors import instead_of
from emulator.scenario.schema import Boot, Scenario, ZooKeeperSettings
from emulator.scenario.typed import cluster_of, read_typed
from emulator.scenario.units import show_us
from emulator.trace import events
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition
from emulator.worlds.emulated_host import nodes_of
from zk import paths
from zk.client import codec
from zk.client.codec import LeaderIsrAndControllerEpoch

E = TypeVar("E")
FIRST = TopicPartition("orders", 0)
STEP_US = 5_000
WITHIN_MS = 30_000
SETTINGS = {
    "replica.lag.time.max.ms": "2000",
    "zookeeper.session.timeout.ms": "2000",
    "auto.leader.rebalance.enable": "false",
}
"""Short timeouts, which keep race tests fast."""


class TimedOut(AssertionError):
    """A condition did not hold in time."""


def scenario_of(
    *brokers: int,
    profile: str = "2.6",
    guards: Mapping[str, bool] | None = None,
    broker_profiles: Mapping[int, str] | None = None,
    propagation: str = "",
    settings: Mapping[str, object] | None = None,
) -> Scenario:
    """A scenario without a workload. Brokers boot one after the other in this order; the first
    becomes controller."""
    return Scenario(
        "test",
        "",
        profile,
        tuple(Boot(b) for b in brokers or (1, 2, 3)),
        {key: str(value) for key, value in (settings or {}).items()},
        {},
        ZooKeeperSettings(),
        (),
        0,
        broker_profiles=dict(broker_profiles or {}),
        guards=dict(guards or {}),
        propagation=propagation,
    )


class Held:
    """A place where the test holds a thread or message. `maybe`: nothing has to reach it."""

    def __init__(self, cluster: Cluster, hold: Hold, *, maybe: bool) -> None:
        self._cluster, self._hold, self.maybe = cluster, hold, maybe
        self._ordered = len(cluster.events)

    @property
    def words(self) -> str:
        """The place: `at zookeeper setData /brokers of broker-1`."""
        return self._hold.place.words

    @property
    def parked(self) -> events.Parked | None:
        """The event of being held, or None before that."""
        place = self._hold.place
        return next(
            (
                event
                for event in self._cluster.events[self._ordered :]
                if isinstance(event, events.Parked)
                and (event.broker, event.at) == (place.broker, place.at)
                and place.fits(event.of, (event.which,), event.peer, event.thread)
            ),
            None,
        )

    def wait(self, within_ms: int = WITHIN_MS) -> Held:
        """Let time pass until something is held."""
        self._cluster.until(lambda: self.parked, within_ms, f"held {self.words}")
        return self

    def release(self) -> None:
        """Release it; if nothing is held yet, cancel the hold."""
        hold = self._hold
        self._cluster.do(Release(hold.broker, hold.at, hold.of, hold.which, hold.peer, hold.thread))


class Cluster:
    """Brokers that are up. Times are the world's, in milliseconds; use as a context manager."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 1,
        *,
        zookeeper: str = SIMULATED,
        data_dir: Path | None = None,
        time_scale: int = 1,
        up: bool = True,
        judged: bool = True,
    ) -> None:
        """`up`: boot the brokers and wait for them; `judged`: check invariants (`monitor`)."""
        self.scenario, self.seed, self.zookeeper = scenario, seed, zookeeper
        self.brokers = tuple(boot.broker for boot in scenario.boots)
        self._done: list[Action] = []
        self._holds: list[Held] = []
        self._since = 0
        options = PlayOptions(
            seed=seed, zookeeper=zookeeper, data_dir=data_dir, time_scale=time_scale
        )
        hearing: Listening = "invariants" if judged else "nothing"
        self.session = Session(scenario, options, hearing=hearing)
        self.monitor = self.session.monitor
        self.world, self.kernel = self.session.world, self.session.kernel
        if up:
            try:
                self.session.run.bring_up()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Take the world down."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- actions -----------------------------------------------------------------------------------

    def do(self, *actions: Action | str) -> Self:
        """Actions at the present moment: objects, or typed as in `isr play` (`pause 2`)."""
        for one in actions:
            if isinstance(one, str):
                one = read_typed(one.split(), cluster_of(self.scenario, self._done))
            self._done.append(one)
            self.world.cluster.apply(one)
        return self

    def hold(
        self,
        broker: int,
        at: At,
        of: str = "",
        which: str = "",
        *,
        peer: int | None = None,
        thread: str = "",
        maybe: bool = False,
    ) -> Held:
        """Hold whatever reaches this place of `broker` next (scenario.actions.hold). If nothing
        ever does, the test fails, unless `maybe` is set. Raises ValueError."""
        if at not in get_args(At):
            raise ValueError(f"hold at {at!r}: {instead_of(at, get_args(At))}")
        for number in (broker, peer):
            if number is not None and number not in self.brokers:
                known = ", ".join(map(str, self.brokers))
                raise ValueError(f"hold: unknown broker {number} (brokers: {known})")
        hold = Hold(broker, at, of, which, peer, thread)
        if wrong := hold.wrong():
            raise ValueError(f"hold: {wrong}")
        held = Held(self, hold, maybe=maybe)
        self._holds.append(held)
        self.do(hold)
        return held

    @property
    def unreached(self) -> list[Held]:
        """Holds without `maybe` that nothing reached."""
        return [held for held in self._holds if not held.maybe and held.parked is None]

    def run_ms(self, duration_ms: int) -> Self:
        """Let time pass."""
        self.kernel.run(self.kernel.now + duration_ms * 1000)
        return self

    def until(
        self, condition: Callable[[], object], within_ms: int = WITHIN_MS, what: str = "it"
    ) -> int:
        """Let time pass until the condition holds. Returns the time taken, in milliseconds."""
        began = self.kernel.now
        while not condition():
            took_ms = (self.kernel.now - began) // 1000
            if took_ms >= within_ms:
                raise TimedOut(f"{what} did not happen within {show_us(within_ms * 1000)}")
            self.kernel.run(self.kernel.now + STEP_US)
        return (self.kernel.now - began) // 1000

    def until_seen(self, kind: type[E], within_ms: int = WITHIN_MS, **fields: object) -> E:
        """Let time pass until the trace has such an event. Returns the first one."""
        self.until(lambda: self.seen(kind, **fields), within_ms, f"{kind.__name__} {fields}")
        return self.seen(kind, **fields)[0]

    def topic(self, name: str, *assignment: tuple[int, ...], **config: object) -> Self:
        """Create a topic and wait until every replica has its role, and every broker shows it."""
        named = {k.replace("_", "."): str(v) for k, v in config.items()}
        self.do(CreateTopic(name, assignment, named))
        replicas = [(TopicPartition(name, n), b) for n, r in enumerate(assignment) for b in r]

        def have_roles() -> bool:
            for partition, broker in replicas:
                manager = self.node(broker).replica_manager
                hosted = manager.partitions.get(partition) if manager else None
                if hosted is None or hosted.leader_replica_id is None:
                    return False
            return True

        self.until(have_roles, what=f"topic {name}")
        return self.run_ms(1500)

    def send(
        self, records: int = 1, *, acks: str = "1", topic: str = "orders", partition: int = 0
    ) -> Self:
        """A client sends records."""
        return self.do(Send(topic, (partition,), records, acks))

    def now_on(self) -> Self:
        """Make `seen` ignore all events so far."""
        self._since = len(self.session.events)
        return self

    # -- observations ------------------------------------------------------------------------------

    @property
    def events(self) -> Sequence[AnyEvent]:
        """All events so far."""
        return self.session.events

    def seen(self, kind: type[E], **fields: object) -> list[E]:
        """Events of this kind with these fields. Raises ValueError for an unknown field."""
        known = getattr(kind, "__struct_fields__", ())
        for name in fields:
            if name not in known:
                raise ValueError(f"{kind.__name__} has no field {name}; {instead_of(name, known)}")
        return [
            e
            for e in self.session.events[self._since :]
            if isinstance(e, kind) and all(getattr(e, k) == v for k, v in fields.items())
        ]

    def isr_history(self, partition: TopicPartition = FIRST) -> list[tuple[int, ...]]:
        """Every ISR that a leader wrote to ZooKeeper."""
        return [e.isr for e in self.seen(events.IsrUpdated, partition=partition)]

    def node(self, broker: int) -> Broker:
        return nodes_of(self.world.cluster)[broker]

    def hosted(self, broker: int, partition: TopicPartition = FIRST) -> Partition:
        manager = self.node(broker).replica_manager
        assert manager is not None
        return manager.partitions[partition]

    def offsets(self, broker: int, partition: TopicPartition = FIRST) -> tuple[int, int]:
        """(log end offset, high watermark) of one replica."""
        log = self.hosted(broker, partition).log
        assert log is not None
        return log.log_end_offset, log.high_watermark

    def cached_isr(self, broker: int, partition: TopicPartition = FIRST) -> tuple[int, ...]:
        """The ISR in a broker's metadata cache."""
        state = self.node(broker).metadata_cache.partition(partition)
        assert state is not None
        return state.isr

    def state(self, partition: TopicPartition = FIRST) -> LeaderIsrAndControllerEpoch:
        """The state in ZooKeeper, from the last transaction that wrote the state znode."""
        path = paths.topic_partition_state(*partition)
        written: list[str] = []
        for event in self.session.events:
            if isinstance(event, events.ZkTransaction):
                parts = [(event.path, event.data), *((op.path, op.data) for op in event.ops)]
                written += [data for where, data in parts if where == path and data]
        return codec.decode_state(path, written[-1].encode(), len(written) - 1)

    def produced(self) -> list[tuple[str, str]]:
        """(acks, result) of every produce request."""
        return [(e.acks, e.result) for e in self.seen(events.RecordsProduced)]

    @property
    def controller(self) -> int:
        """The broker that was elected last."""
        elected = [e for e in self.session.events if isinstance(e, events.ControllerElected)]
        return elected[-1].broker

    @property
    def schedule(self) -> list[str]:
        """The actions and holds of the race, in order."""
        lines = []
        for event in self.session.events:
            at = f"{(event.t - self.session.run.up_us) / 1e6:9.3f} s"
            if isinstance(event, events.ActionApplied):
                parameters: dict[str, object] = msgspec.to_builtins(event.parameters)
                words = " ".join(f"{k}={v}" for k, v in parameters.items())
                who = f"broker {event.broker}" if event.broker else "        "
                lines.append(f"{at}  {who}  {event.do} {words}".rstrip())
            elif isinstance(event, events.Parked):
                what = " ".join(filter(None, (event.at, event.of, event.which, event.peer)))
                lines.append(f"{at}  broker {event.broker}    held: {what} ({event.thread})")
        return lines
