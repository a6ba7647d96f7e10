"""A controller that hears of its successors' epochs, up to 0.8.1 (KAFKA-1096).

Owns the watch on `/controller_epoch` that every broker had, and what it makes of a change. It must
not know what a controller does with its epoch.
Source: ControllerEpochListener in controller/KafkaController.scala@0.8.1.1 (bytecode).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container

from emulator.kafka.controller.context import ControllerContext
from emulator.kafka.controller.handlers import NodeChangeHandler
from emulator.kafka.profiles.guards.base import Guard
from emulator.kafka.profiles.guards.controller import EPOCH_ONLY_FROM_ELECTION
from zk import paths
from zk.client.kafka_zk_client import KafkaZkClient


async def listen_to_epochs(
    guards: Container[Guard],
    zk_client: KafkaZkClient,
    put: Callable[[str, Callable[[], Awaitable[None]]], None],
    context: ControllerContext,
) -> None:
    """From now on every epoch that is written is taken over, whosever it is."""
    if EPOCH_ONLY_FROM_ELECTION in guards:
        return

    async def read() -> None:
        found = await zk_client.get_controller_epoch()
        if found is not None:
            context.take_over_epoch(found[0])

    changed = NodeChangeHandler(
        paths.CONTROLLER_EPOCH, changed=lambda: put("ControllerEpochChange", read)
    )
    await zk_client.register_and_check_existence(changed)
