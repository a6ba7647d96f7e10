"""A LeaderAndIsr waits for a lock whose holder waits for ZooKeeper, half applied."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.caught_up_members_stay import LATELY_US, ExpelledWithEverything
from emulator.invariants.fetchers_follow_the_epoch import SOON_US
from emulator.invariants.known.base import Hazard, expelled
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition


class LockHeldAcrossZooKeeper(Hazard):
    """Partition.scala@0.8.2.2 maybeShrinkIsr writes under leaderIsrUpdateLock, which makeFollower
    takes. ReplicaManager.scala@0.8.2.2 makeFollowers removes the fetchers after the last partition.
    As long as leaders write to ZooKeeper themselves (H22): only AlterIsr ended it.
    AbstractFetcherThread.scala@0.8.2.2 processFetchRequest handles an offset out of range under
    partitionMapLock, which removing a partition takes from every fetcher: ReplicaFetcherThread asks
    ZooKeeper for the topic's configuration, and then its leader for offsets."""

    name = "lock held across ZooKeeper"
    about = (
        "A leader's ISR write waits for ZooKeeper and holds the partition's lock. A LeaderAndIsr "
        "waits for the lock. Partitions before it in the request have the new leader epoch, and "
        "still fetch from the old leader. A follower's fetch waits, too, until the follower has "
        "lagged for too long. Or a fetcher thread asks ZooKeeper for a topic's configuration and "
        "holds its own lock, which the removal of fetchers waits for."
    )
    breaks = ("fetchers follow the epoch", "caught up members stay")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The thread that took the role has not made that of another partition in its request,
        whose lock an ISR write holds, and has held for so long that this alone delays it. Or it
        removes fetchers, and one of them has asked ZooKeeper and not fetched since. Or a follower
        had lagged for less than the shortest lag time, if the ISR writes of its partition
        since its last fetch had taken no time."""
        if isinstance(violation, ExpelledWithEverything):
            lag_us, waited_us = _lag(violation, events)
            return lag_us - waited_us < 2 * LATELY_US <= lag_us
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
        held_from = [one.t for at, one in writes.items() if at in entries]
        held_from += _fetchers_ask_from(events[: violation.facts[1]], took.broker)
        return any(t - took.t < SOON_US for t in held_from)


def _fetchers_ask_from(events: Sequence[AnyEvent], broker: int) -> list[int]:
    """When the broker's fetcher threads that have asked ZooKeeper since their last fetch first did
    so."""
    since: dict[str, int] = {}
    for event in events:
        if event.broker != broker:
            continue
        match event:
            case e.BrokerStarting():
                since.clear()
            case e.ZkSent() if event.thread.startswith("ReplicaFetcherThread"):
                since.setdefault(event.thread, event.t)
            case e.FetchSent():
                since.pop(event.thread, None)
    return list(since.values())


def _lag(violation: ExpelledWithEverything, events: Sequence[AnyEvent]) -> tuple[int, int]:
    """How long the removed follower had lagged, and how much of this time the leader wrote this
    ISR to ZooKeeper."""
    started, _ = expelled(violation, events)
    (lagging,) = (one for one in started.out_of_sync if one.replica == violation.broker)
    caught_up = started.t - lagging.not_caught_up_ms * 1000
    waited = 0
    began: int | None = None
    for event in events[: started.seq]:
        if (event.broker, getattr(event, "partition", None)) != (started.broker, started.partition):
            continue
        match event:
            case e.IsrUpdateStarted():
                began = event.t
            case e.AlterIsrProposed():
                began = None
            case e.IsrUpdated() | e.IsrUpdateRejected() if began is not None:
                waited += max(0, event.t - max(began, caught_up))
                began = None
    return started.t - caught_up, waited
