"""How a new controller subscribes with ZkClient (up to 1.0): each listener makes its own reads.

Left-over notifications of ISR changes stay until the next one is created (H10). Sources:
controller/KafkaController.scala@1.0.2 and @0.8.2.2 onControllerFailover; spec §2.12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from emulator.kafka.controller.handlers import ChildChangeHandler, NodeChangeHandler
from emulator.kafka.profiles.base import Profile
from emulator.kafka.profiles.guards.controller import COMMAND_READ_AFTER_START_UP
from emulator.trace.values import TopicPartition
from zk import paths
from zk.client.kafka_zk_client import KafkaZkClient


class EarlyCommands(NamedTuple):
    """The content of the command znodes when the context was read; None: not read at that time."""

    elections: list[TopicPartition] | None
    moves: dict[TopicPartition, tuple[int, ...]] | None


async def commands_read_early(zk_client: KafkaZkClient, profile: Profile) -> EarlyCommands:
    """Up to 2.3 the reassignment command is read with the context; up to 0.10 the command of
    preferred elections is read before it."""
    if COMMAND_READ_AFTER_START_UP in profile.guards:
        return EarlyCommands(None, None)
    elections = None
    if profile.controller_threads == "callbacks":
        elections = await zk_client.get_preferred_replica_election()
    return EarlyCommands(elections, await zk_client.get_partition_reassignment())


async def subscribe(
    zk_client: KafkaZkClient,
    children: Sequence[ChildChangeHandler],
    elections: NodeChangeHandler,
    reassignments: NodeChangeHandler,
    epoch_zk_version: int,
) -> None:
    """Subscribe in the order of the sources; notifications of log directories are deleted
    unread."""
    # A child watch comes with a list of children that is not used: the context is read afterwards
    # and includes them.
    by_path = {handler.path: handler for handler in children}
    if paths.LOG_DIR_EVENT_NOTIFICATION in by_path:
        left = await zk_client.get_all_log_dir_event_notifications()
        await zk_client.delete_log_dir_event_notifications(left, epoch_zk_version)
    await zk_client.register_and_check_existence(reassignments)
    await _subscribe_children(zk_client, by_path, paths.ISR_CHANGE_NOTIFICATION)
    await zk_client.register_and_check_existence(elections)
    for path in (paths.TOPICS, paths.DELETE_TOPICS, paths.BROKER_IDS):
        await _subscribe_children(zk_client, by_path, path)
    await _subscribe_children(zk_client, by_path, paths.LOG_DIR_EVENT_NOTIFICATION)


async def _subscribe_children(
    zk_client: KafkaZkClient, by_path: Mapping[str, ChildChangeHandler], path: str
) -> None:
    if path in by_path:
        await zk_client.client.subscribe_child_changes(by_path[path])
