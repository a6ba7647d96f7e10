"""A small cluster in virtual time, driven by hand: the stage of the tests of the spec's sentences.

    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3))
        cluster.do(Pause(2)).run_ms(3000)
        assert cluster.isr_history() == [...]

Times are virtual; latencies are drawn from the declared ranges, under one seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from emulator.broker.partition import Partition
from emulator.faults.admin import CreateTopic
from emulator.faults.base import Stimulus
from emulator.faults.clients import Send
from emulator.node import Broker
from emulator.runtime.play import Run
from emulator.runtime.simulated import SimulatedWorld
from emulator.scenario.schema import Boot, Scenario, ZooKeeperSettings
from emulator.trace import events
from emulator.trace.sink import Sink
from emulator.trace.values import TopicPartition
from zk import codec, paths
from zk.codec import LeaderIsrAndControllerEpoch

E = TypeVar("E")
ORDERS_0 = TopicPartition("orders", 0)
LAG_MS = 2000


class Emulated:
    """Brokers that have booted one after the other, in this order; the first one is controller."""

    def __init__(
        self,
        *brokers: int,
        seed: int = 1,
        up: bool = True,
        profile: str = "2.6",
        guards: Mapping[str, bool] | None = None,
        broker_profiles: Mapping[int, str] | None = None,
        **settings: object,
    ) -> None:
        """`settings` are Kafka's, with underscores; the lag is 2 s unless it is given."""
        named = {"replica_lag_time_max_ms": LAG_MS, "auto_leader_rebalance_enable": "false"}
        named |= settings
        self.brokers = brokers or (1, 2, 3)
        scenario = Scenario(
            "spec",
            "",
            profile,
            tuple(Boot(b) for b in self.brokers),
            {key.replace("_", "."): str(value) for key, value in named.items()},
            {},
            ZooKeeperSettings(),
            (),
            0,
            broker_profiles=dict(broker_profiles or {}),
            guards=dict(guards or {}),
        )
        self.sink = Sink()
        self.world = SimulatedWorld(scenario, seed, self.sink)
        self.kernel = self.world.kernel
        self._since = 0
        if up:
            Run(self.world).bring_up()

    def __enter__(self) -> Emulated:
        return self

    def __exit__(self, *error: object) -> None:
        self.world.close()

    # -- what is done ------------------------------------------------------------------------------

    def do(self, *stimuli: Stimulus) -> Emulated:
        """Stimuli at the present moment."""
        for stimulus in stimuli:
            self.world.cluster.apply(stimulus)
        return self

    def run_ms(self, duration_ms: int) -> Emulated:
        self.kernel.run(self.kernel.now + duration_ms * 1000)
        return self

    def run_until(self, condition: Callable[[], object], limit_ms: int = 30_000) -> int:
        """Run in small steps until the condition holds; returns the milliseconds that took."""
        began = self.kernel.now
        while not condition():
            took_ms = (self.kernel.now - began) // 1000
            assert took_ms < limit_ms, f"it did not come about within {limit_ms} ms"
            self.kernel.run(self.kernel.now + 5_000)
        return (self.kernel.now - began) // 1000

    def topic(self, name: str, *assignment: tuple[int, ...], **config: object) -> Emulated:
        """Create a topic and wait until every replica has its role."""
        named = {k.replace("_", "."): str(v) for k, v in config.items()}
        self.do(CreateTopic(name, assignment, named))
        replicas = [(TopicPartition(name, n), b) for n, r in enumerate(assignment) for b in r]
        self.run_until(lambda: all(self._has_role(p, b) for p, b in replicas))
        return self.run_ms(1500)

    def _has_role(self, partition: TopicPartition, broker: int) -> bool:
        manager = self.node(broker).replica_manager
        hosted = manager.partitions.get(partition) if manager else None
        return hosted is not None and hosted.leader_replica_id is not None

    def send(self, records: int = 1, *, acks: str = "1", partition: int = 0) -> Emulated:
        return self.do(Send("orders", (partition,), records, acks))

    def now_on(self) -> Emulated:
        """Look only at what happens from here on."""
        self._since = len(self.sink.events)
        return self

    # -- what is seen ------------------------------------------------------------------------------

    def seen(self, kind: type[E], **fields: object) -> list[E]:
        """Events of this kind with these fields."""
        return [
            e
            for e in self.sink.events[self._since :]
            if isinstance(e, kind) and all(getattr(e, k) == v for k, v in fields.items())
        ]

    def isr_history(self, partition: TopicPartition = ORDERS_0) -> list[tuple[int, ...]]:
        """Every ISR that a leader got into ZooKeeper."""
        return [e.isr for e in self.seen(events.IsrUpdated, partition=partition)]

    def node(self, broker: int) -> Broker:
        return self.world.cluster.brokers[broker]

    def hosted(self, broker: int, partition: TopicPartition = ORDERS_0) -> Partition:
        manager = self.node(broker).replica_manager
        assert manager is not None
        return manager.partitions[partition]

    def offsets(self, broker: int, partition: TopicPartition = ORDERS_0) -> tuple[int, int]:
        """(log end offset, high watermark) of one replica."""
        log = self.hosted(broker, partition).log
        assert log is not None
        return log.log_end_offset, log.high_watermark

    def cached_isr(self, broker: int, partition: TopicPartition = ORDERS_0) -> tuple[int, ...]:
        """The ISR that a broker tells clients."""
        state = self.node(broker).metadata_cache.partition(partition)
        assert state is not None
        return state.isr

    def state(self, partition: TopicPartition = ORDERS_0) -> LeaderIsrAndControllerEpoch:
        """What ZooKeeper has: the last transaction that wrote the state znode."""
        path = paths.topic_partition_state(*partition)
        written: list[Any] = []
        for event in self.sink.events:
            if isinstance(event, events.ZkTransaction):
                written += [op for op in (event, *event.ops) if op.path == path and op.data]
        last = written[-1]
        return codec.decode_state(path, last.data.encode(), len(written) - 1)

    def produced(self) -> list[tuple[str, str]]:
        """(acks, result) of every delivered or failed hand-over."""
        return [(e.acks, e.result) for e in self.seen(events.RecordsProduced)]

    def requests(self, broker: int) -> list[str]:
        """What passed on the wire between a broker and ZooKeeper, in the notation of spec §2.12."""
        return [_line(e) for e in self.seen(events.ZkRequest, broker=broker)]


def _line(request: events.ZkRequest) -> str:
    if request.ops:
        return "multi " + " ".join(f"{op.op} {op.path}" for op in request.ops)
    watch = " W" if request.watch else ""
    return request.op if request.path is None else f"{request.op} {request.path}{watch}"
