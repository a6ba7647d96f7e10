"""A topic is deleted while a broker has no session: the broker's metadata keeps it until its
process ends."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.invariants.metadata_converges import ShowsDeleted
from emulator.trace import events as e
from emulator.trace.events import AnyEvent

_STARTED = "ReplicaDeletionStarted"
"""Just before, the controller has sent every live broker metadata without the topic."""
_IDS, _DELETIONS = "/brokers/ids/", "/admin/delete_topics/"


class MissedDeletion(Hazard):
    """A deletion is announced once, to the live brokers. A broker that returns with a new session
    receives every existing partition, and its cache updates entry by entry
    (MetadataCache.scala@2.6.3 updateMetadata): the deleted partitions stay."""

    name = "missed deletion"
    about = (
        "A topic is deleted while a broker has lost its session, or is paused and loses it before "
        "the announcement reaches it. When the broker registers again it receives the existing "
        "topics; the deleted one stays in its metadata until its process ends."
    )
    breaks = ("metadata converges",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """When the deletion was announced, or at its end, the broker was not registered, or the
        controller did not know it yet, or gave it up before it had the announcement; and its
        process is the same since."""
        partition, broker = violation.partition, violation.broker
        if partition is None or not isinstance(violation, ShowsDeleted):
            return False
        missed = known = registered = shows = waits = False
        announced = True
        for event in events:
            match event:
                case e.BrokerStarting() if event.broker == broker:
                    missed, announced, waits, shows = False, True, False, False
                case e.ControllerElected():
                    known = registered
                case e.BrokerChange():
                    known = broker in event.live
                    # What its send thread had queued ends with the thread.
                    missed, waits = missed or (waits and not known), waits and known
                case e.MetadataCacheUpdated(broker=violation.broker):
                    shows = partition not in event.removed and (
                        shows or any(state.partition == partition for state in event.states)
                    )
                    waits = waits and shows
                case e.ReplicaStateChanged(partition=at, to_state=to) if (
                    at == partition and to == _STARTED
                ):
                    announced = registered and known
                    waits = announced and shows
                case e.ZkTransaction():
                    deleted = _paths(event, "delete")
                    registered = registered and f"{_IDS}{broker}" not in deleted
                    registered = registered or f"{_IDS}{broker}" in _paths(event, "create")
                    if f"{_DELETIONS}{partition.topic}" in deleted:
                        missed = not (registered and known and announced)
        return missed


def _paths(event: e.ZkTransaction, op: str) -> list[str]:
    """The paths that a transaction created or deleted; the end of a session deletes its ephemeral
    znodes."""
    of_ops = [each.path or "" for each in event.ops or (event,) if each.op == op and not each.code]
    return [*of_ops, *event.removed] if op == "delete" else of_ops
