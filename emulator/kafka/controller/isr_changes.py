"""ISR changes that leaders wrote themselves: the controller learns of them from notifications.

Owns how a notification is processed and when it is deleted. Source:
controller/KafkaController.scala@2.6.3 processIsrChangeNotification; spec §6.6.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.controller.errors import ControllerFailure
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.reassignment import Reassignments
from emulator.kafka.profiles.guards.controller import (
    EMPTY_MEANS_NONE,
    FENCED_CONTROLLER_WRITES,
    NOTIFICATIONS_READ_AGAIN,
)
from emulator.trace import events
from zk import paths
from zk.client.zk_requests import NO_FENCING
from zk.errors import ZooKeeperError


class IsrChangeNotifications:
    """Children of `/isr_change_notification`."""

    def __init__(self, parts: ControllerParts, reassignments: Reassignments) -> None:
        self._parts, self._reassignments = parts, reassignments
        self._zk_client = parts.zk_client
        guards = parts.host.guards
        self._fenced = FENCED_CONTROLLER_WRITES in guards
        self._names_once = parts.host.profile.zookeeper_client == "zkclient"
        self._reads_again = NOTIFICATIONS_READ_AGAIN in guards
        self._empty_means_none = EMPTY_MEANS_NONE in guards

    async def on_change(self, listed: Sequence[str] | None = None) -> None:
        """List and read the notifications, read the state znodes, send UpdateMetadata to all
        brokers, delete the listed notifications. `listed` came with the event."""
        # Listing sets the watch again, so it comes first: a notification created later is an event
        # of its own. The deletion below fires the watch as well, and causes one more event, which
        # finds nothing.
        numbers = await self._zk_client.get_all_isr_change_notifications(
            None if self._reads_again else listed
        )
        try:
            # Each notification's partitions are a Set.
            order = self._parts.context.order
            changes = await self._zk_client.get_partitions_from_isr_change_notifications(numbers)
            named = [partition for change in changes for partition in order.as_set(change)]
            partitions = list(dict.fromkeys(named))
            if partitions:
                # A notification only names partitions: their states may be newer still. No
                # LeaderAndIsr is sent: the leader wrote the change, and followers do not need the
                # ISR. Since 1.1 a state is read once for each notification that names its
                # partition: the collection became a Seq; it was a Set (KafkaController.scala@1.0.2
                # IsrChangeNotification).
                reads = order.as_set(partitions) if self._names_once else named
                await self._parts.update_leadership_cache(reads, "notification")
                await self._parts.host.kernel.checkpoint("notification_processed")
                await self._parts.send_update_metadata_to_all(partitions)
                await self._reassignments.notified(partitions)
            elif not self._empty_means_none:
                await self._parts.send_update_metadata_to_all(tuple(self._parts.context.leadership))
        except (ZooKeeperError, ControllerFailure):
            # Kafka deletes in a finally: an unprocessed change stays unknown until the next one
            # (H9).
            await self._delete(numbers)
            raise
        await self._delete(numbers)

    async def purge(self) -> None:
        """At fail-over, delete unread: the states are read afterwards and include the notified
        changes (KAFKA-5879)."""
        numbers = await self._zk_client.get_all_isr_change_notifications()
        if self._reads_again:
            await self._delete(numbers)

    async def _delete(self, numbers: Sequence[str]) -> None:
        # Unfenced before 2.1: a controller that was replaced may delete its successor's
        # notifications.
        version = self._parts.context.epoch_zk_version if self._fenced else NO_FENCING
        await self._zk_client.delete_isr_change_notifications(numbers, version)
        if numbers:
            deleted = tuple(paths.isr_change_notification_sequence(n) for n in numbers)
            self._parts.host.emit(events.IsrChangeCleared, deleted)
