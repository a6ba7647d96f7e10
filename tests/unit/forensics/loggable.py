"""The part of an emulated run's trace that a real cluster's logs would contain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emulator.trace import events as e
from emulator.trace.events import AnyEvent

LOGGED = (
    e.AlterIsrFailed,
    e.AlterIsrProposed,
    e.BecomesFollower,
    e.BecomesLeader,
    e.BrokerChange,
    e.BrokerExited,
    e.BrokerRegistered,
    e.BrokerStarted,
    e.BrokerStarting,
    e.ControllerElected,
    e.ControllerResigned,
    e.ControlRequestRefused,
    e.FetcherStarted,
    e.FetcherStopped,
    e.IsrUpdated,
    e.IsrUpdateRejected,
    e.IsrUpdateStarted,
    e.LeaderAndIsr,
    e.LeaderAndIsrIgnored,
    e.LogTruncated,
    e.MetadataCacheUpdated,
    e.PartitionStateChanged,
    e.ProcessStateChanged,
    e.ReplicaStateChanged,
    e.StopReplica,
    e.StopReplicaIgnored,
    # ZooKeeper's own log:
    e.IsrChangeCleared,
    e.IsrChangeNotified,
    e.ZkTransaction,
)


def loggable(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """A log does not say who lives for a broker, nor that a process was paused or killed; of a
    session, only that it expired."""
    for event in events:
        match event:
            case e.MetadataCacheUpdated() if not event.states and not event.removed:
                continue
            case e.ProcessStateChanged(state="paused" | "dead"):
                continue
            case (
                e.ZkSessionState(state="Expired")
                | e.ControllerCacheUpdated(why="election" | "creation")
            ):
                yield event
            case _ if isinstance(event, LOGGED):
                yield event
