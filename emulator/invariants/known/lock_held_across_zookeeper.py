"""A LeaderAndIsr waits for an ISR write to ZooKeeper, half applied."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.fetchers_follow_the_epoch import SOON_US
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition


class LockHeldAcrossZooKeeper(Hazard):
    """Partition.scala@0.8.2.2 maybeShrinkIsr writes under leaderIsrUpdateLock, which makeFollower
    takes. ReplicaManager.scala@0.8.2.2 makeFollowers removes the fetchers after the last partition.
    As long as leaders write to ZooKeeper themselves (H22): only AlterIsr ended it."""

    name = "lock held across ZooKeeper"
    about = (
        "A leader's ISR write waits for ZooKeeper and holds the partition's lock. A LeaderAndIsr "
        "waits for the lock. Partitions before it in the request have the new leader epoch, and "
        "still fetch from the old leader."
    )
    breaks = ("fetchers follow the epoch",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The thread that took the role has not made that of another partition in its request,
        whose lock an ISR write holds, and has held for so long that this alone delays it."""
        took = events[violation.facts[0]]
        writes: dict[TopicPartition, e.IsrUpdateStarted] = {}
        entries: set[TopicPartition] = set()
        arrived = -1
        for event in events[: violation.facts[1]]:
            if event.broker != took.broker:
                continue
            match event:
                case e.BrokerStarting():
                    writes.clear()
                case e.IsrUpdateStarted():
                    writes[event.partition] = event
                case e.IsrUpdated() | e.IsrUpdateRejected() | e.AlterIsrProposed():
                    writes.pop(event.partition, None)  # AlterIsr is sent without the lock
                case e.ThreadFailed():
                    writes = {at: one for at, one in writes.items() if one.thread != event.thread}
                case e.LeaderAndIsr() if event.thread == took.thread:
                    is_same_request = event.cause == arrived and event.seq < took.seq
                    entries = {event.state.partition} | (entries if is_same_request else set())
                    arrived = event.seq
                case e.LeaderAndIsrIgnored() if event.thread == took.thread:
                    entries.discard(event.state.partition)
                case e.BecomesFollower() | e.BecomesLeader() if event.thread == took.thread:
                    entries.discard(event.partition)
        held = [one for at, one in writes.items() if at in entries]
        return any(one.t - took.t < SOON_US for one in held)
