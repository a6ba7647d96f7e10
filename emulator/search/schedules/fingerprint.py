"""The state of a whole cluster as a search tells it from others: a digest.

Owns what counts: what ZooKeeper has, what every broker holds (roles, ISR, logs, what it knows of
followers, metadata, the controller's cache), where every thread stands (its chain of awaits), what
is on its way, in its order, and what of it was passed over. Times are not kept: two states that
differ only in when something is due, and not in the order, count as one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from emulator.kafka.broker.partition import Partition
from emulator.kafka.node import Broker
from emulator.kernel.choices import ChoosingKernel
from emulator.kernel.scheduler import Task
from emulator.search.schedules.labels import label_of
from emulator.worlds.emulated_host import nodes_of
from emulator.worlds.simulated import SimulatedWorld


def state_of(world: SimulatedWorld, late: tuple[str, ...] = ()) -> str:
    """The digest of what is there now, and of what is late of it."""
    kernel = world.kernel
    assert isinstance(kernel, ChoosingKernel)
    digest = hashlib.blake2b(digest_size=12)
    for part in (_zookeeper(world), _brokers(world), _threads(kernel), _on_its_way(kernel), late):
        for piece in part:
            digest.update(repr(piece).encode())
            digest.update(b"\n")
    return digest.hexdigest()


def _zookeeper(world: SimulatedWorld) -> Iterator[object]:
    tree = world.ensemble.tree
    for path in tree.paths():
        node = tree.node(path)
        assert node is not None
        yield path, node.data, node.version, node.ephemeral_owner != 0


def _brokers(world: SimulatedWorld) -> Iterator[object]:
    for number, broker in sorted(nodes_of(world.cluster).items()):
        yield number, world.kernel.processes[f"broker-{number}"].state, broker.broker_epoch
        yield from _broker(broker)


def _broker(broker: Broker) -> Iterator[object]:
    manager, controller = broker.replica_manager, broker.controller
    if manager is not None:
        for name, partition in sorted(manager.partitions.items()):
            yield name, _partition(partition)
            yield broker.metadata_cache.partition(name)
    yield broker.metadata_cache.controller_id
    if controller is not None:
        context = controller.context
        yield context.epoch, context.leadership, context.live_brokers, context.shutting_down


def _partition(of: Partition) -> tuple[object, ...]:
    log = of.log
    return (
        of.leader_replica_id,
        of.leader_epoch,
        of.zk_version,
        of.isr_state,
        [(r.broker, r.log_end_offset) for r in of.remotes.values()],
        log and (log.log_end_offset, log.high_watermark, log.epochs.entries),
    )


def _threads(kernel: ChoosingKernel) -> Iterator[object]:
    for name, process in kernel.processes.items():
        for task in process.live_tasks:
            yield name, task.thread, task.waiting_for, tuple(await_chain(task))


def await_chain(task: Task) -> Iterator[tuple[str, int]]:
    """Where a thread stands: each frame that waits for the next."""
    coro: Any = task.coro
    while (frame := getattr(coro, "cr_frame", None)) is not None:
        yield frame.f_code.co_qualname, frame.f_lasti
        coro = coro.cr_await


def _on_its_way(kernel: ChoosingKernel) -> Iterator[object]:
    for _, item in kernel.pending():
        if not item.is_cancelled():
            yield label_of(item)
