"""A controller writes an ISR, loses the response, and then refuses the leader because of its own
write."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.partitions import Partitions


class DoesNotRecogniseItsOwnWrite(Hazard):
    """KafkaZkClient.scala@2.7.2 retryRequestsUntilConnected sends a multi again after a lost
    connection. setTopicPartitionStatesRaw compares only versions, whereas leaders have recognised
    their own writes since 0.8.2 (KAFKA-1382). Never fixed in a version with ZooKeeper (H20)."""

    name = "own AlterIsr write"
    about = (
        "ZooKeeper writes the ISR that a controller accepted, and the response is lost with the "
        "connection. The repeated write finds another version. Controller and leader go on with "
        "the old state: the leader waits for a LeaderAndIsr, which nobody has a reason to send."
    )
    breaks = (
        "replicas return to isr",
        "controller knows states",
        "metadata converges",
        "nothing is left to do",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The controller answered INVALID_UPDATE_VERSION although the partition's state was the
        leader's proposal, newer than the controller's cache. The leader has learned no other state
        since; nor has the controller, if the violation is about it."""
        name = violation.partition
        if name is None:
            return False
        partitions, cached, refused = Partitions(), -1, -1
        for event in events:
            match event:
                case e.ZkTransaction():
                    partitions.on_zk_transaction(event)
                case e.BecomesLeader(partition=at) if at == name:
                    refused = -1
                case e.ControllerCacheUpdated(partition=at) if at == name:
                    cached = event.zk_version
                case e.AlterIsrDecided(partition=at, error="INVALID_UPDATE_VERSION") if at == name:
                    now = partitions.of(name).now
                    if now is not None and cached < now.version and now.by_controller:
                        written = event.sender == now.leader and event.proposed == now.isr
                        refused = now.version if written else refused
        now = partitions.of(name).now
        if now is None or now.version != refused:
            return False
        return violation.invariant == "replicas return to isr" or cached < refused
