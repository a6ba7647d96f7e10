"""What a new controller listens to, with ZkClient (<= 1.0): each listener with its own reads.

Left-over notifications of ISR changes stay until the next one comes (H10). Sources:
controller/KafkaController.scala@1.0.2 and @0.8.2.2 onControllerFailover; spec §2.12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.controller.handlers import ChildChangeHandler, NodeChangeHandler
from zk import paths
from zk.kafka_zk_client import KafkaZkClient


async def subscribe(
    zk_client: KafkaZkClient,
    children: Sequence[ChildChangeHandler],
    elections: NodeChangeHandler,
    reassignments: NodeChangeHandler,
    epoch_zk_version: int,
) -> None:
    """In the order of the sources; events of log directories are purged unread."""
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
