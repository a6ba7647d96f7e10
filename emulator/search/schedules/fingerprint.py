"""A digest of the whole cluster's state, by which a search recognises states.

Owns what is included: ZooKeeper's content, each broker's state (roles, ISR, logs, knowledge of
followers, metadata, the controller's cache), each thread's position (its chain of awaits), the
messages in flight in order, and which of these were deferred. Times are left out: states that
differ only in when something is due, but not in the order, are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import CoroutineType

from emulator.kafka.node import Broker
from emulator.kernel.choices import ChoosingKernel
from emulator.kernel.scheduler import Task
from emulator.search.schedules.labels import label_of
from emulator.worlds.emulated_host import nodes_of
from emulator.worlds.simulated import SimulatedWorld


def state_of(world: SimulatedWorld, late: tuple[str, ...] = ()) -> str:
    """The digest of the current state; `late`: the labels of deferred items."""
    digest = hashlib.blake2b(digest_size=12)
    for piece in (*_pieces(world), *late):
        digest.update(repr(piece).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _pieces(world: SimulatedWorld) -> Iterator[object]:
    kernel, tree = world.kernel, world.ensemble.tree
    assert isinstance(kernel, ChoosingKernel)
    for path in tree.paths():
        node = tree.node(path)
        assert node is not None
        yield path, node.data, node.version, node.ephemeral_owner != 0
    for number, broker in sorted(nodes_of(world.cluster).items()):
        yield number, kernel.processes[f"broker-{number}"].state, broker.broker_epoch
        yield from _pieces_of(broker)
    for name, process in kernel.processes.items():
        for task in process.live_tasks:
            yield name, task.thread, task.waiting_for, tuple(await_chain(task))
    for _, item in kernel.pending():
        if not item.is_cancelled():
            yield label_of(item)


def _pieces_of(broker: Broker) -> Iterator[object]:
    manager, controller = broker.replica_manager, broker.controller
    if manager is not None:
        for name, partition in sorted(manager.partitions.items()):
            log = partition.log
            yield (
                name,
                partition.leader_replica_id,
                partition.leader_epoch,
                partition.zk_version,
                partition.isr_state,
                [(remote.broker, remote.log_end_offset) for remote in partition.remotes.values()],
                log and (log.log_end_offset, log.high_watermark, log.epochs.entries),
            )
            yield broker.metadata_cache.partition(name)
    yield broker.metadata_cache.controller_id
    if controller is not None:
        context = controller.context
        yield context.epoch, context.leadership, context.live_brokers, context.shutting_down


def await_chain(task: Task) -> Iterator[tuple[str, int]]:
    """A thread's position: each frame that waits for the next."""
    waiting: object = task.coro
    while isinstance(waiting, CoroutineType) and waiting.cr_frame is not None:
        yield waiting.cr_frame.f_code.co_qualname, waiting.cr_frame.f_lasti
        waiting = waiting.cr_await
