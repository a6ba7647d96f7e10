"""A cluster on a real ZooKeeper server, brought up and driven by hand; beside it plain kazoo."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from kazoo.client import KazooClient

from emulator.kafka.broker.partition import Partition
from emulator.runs.play import PlayOptions
from emulator.runs.session import Session
from emulator.scenario.load import loads
from emulator.scenario.schema import Scenario
from emulator.worlds.emulated_host import nodes_of
from emulator.worlds.live import LiveWorld

PATIENCE_US = 60_000_000


def scenario(text: str) -> Scenario:
    """From the text of a scenario file."""
    return loads(text, "bench")


class LiveCluster:
    """What a measurement asks of it."""

    def __init__(self, session: Session) -> None:
        assert isinstance(session.world, LiveWorld)
        self.world, self.kernel, self.run = session.world, session.kernel, session.run
        self.sink = session.listeners.sink
        self.count: Counter[type] = Counter()
        self.sink.listen(lambda event: self.count.update((type(event),)))

    def until(self, done: Callable[[], bool], patience_us: int = PATIENCE_US) -> None:
        """Let it go on until then; in small steps, so that the kernel thread looks often."""
        limit_us = self.kernel.now + patience_us
        while not done():
            assert self.kernel.now < limit_us, "it did not come about"
            self.kernel.run(self.kernel.now + 5_000)

    def apply_due(self, number: int) -> None:
        """The scenario's next steps, whatever their time."""
        for step in self.world.scenario.steps[self.run.segment :][:number]:
            self.run.segment += 1
            self.world.cluster.apply(step.action)

    def partitions_led(self, broker: int) -> list[Partition]:
        manager = nodes_of(self.world.cluster)[broker].replica_manager
        assert manager is not None
        return [one for one in manager.partitions.values() if one.is_leader]


@contextmanager
def live_cluster(text: str) -> Iterator[LiveCluster]:
    """The brokers are up; topics are not made yet. Everything ends with the block."""
    with TemporaryDirectory(prefix="isr-bench-") as data:
        options = PlayOptions(seed=1, zookeeper="embedded", data_dir=Path(data))
        with Session(scenario(text), options, hearing="nothing") as session:
            cluster = LiveCluster(session)
            cluster.run.bring_up()
            with on_one_core():
                yield cluster


@contextmanager
def on_one_core() -> Iterator[None]:
    """Every thread of this process on one core, ours and plain kazoo's alike (the server has the
    others). They share one interpreter lock anyway; what it costs to wake a core that sleeps, which
    differs twofold from minute to minute on a virtual machine, is not what is compared."""
    all_cores = os.sched_getaffinity(0)
    _move_to({min(all_cores)})
    try:
        yield
    finally:
        _move_to(all_cores)


def _move_to(cores: set[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), cores)


@contextmanager
def plain_kazoo(world: LiveWorld) -> Iterator[KazooClient]:
    """A client as anyone would use it, straight to the same server."""
    assert world.server is not None
    client = KazooClient(hosts=str(world.server.address))
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()
