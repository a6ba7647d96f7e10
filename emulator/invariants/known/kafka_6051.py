"""Up to 1.0 a fetcher thread ends only after the response to its fetch (KAFKA-6051)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.dead_brokers_are_announced import SOON_US
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.following import FETCHER_SHUTDOWN_ENDS_FETCH
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class FetcherEndsLate(Hazard):
    """ReplicaManager.scala@1.0.2 becomeLeaderOrFollower shuts down idle fetcher threads before it
    responds. Such a thread waits for its fetch first, up to replica.socket.timeout.ms
    (ReplicaFetcherThread.scala@1.0.2 shutdown; 1.1.1 initiateShutdown closes the connection)."""

    name = "KAFKA-6051"
    about = (
        "A broker dies for the controller but keeps its connections, and its request handlers wait "
        "for ZooKeeper. Its followers get new leaders, and wait for the responses to their last "
        "fetches. Until then the controller cannot send them the next UpdateMetadata."
    )
    breaks = ("dead brokers are announced",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Every live broker waited in a LeaderAndIsr for the end of a fetcher thread, so long that
        the next request, an UpdateMetadata, would have been in time without the wait."""
        saw, until = events[violation.facts[0]], events[violation.facts[1]]
        assert isinstance(saw, e.BrokerChange)
        return bool(saw.live) and all(_is_waiting(one, saw, until, events) for one in saw.live)


def _is_waiting(
    broker: int, saw: e.BrokerChange, until: AnyEvent, events: Sequence[AnyEvent]
) -> bool:
    requests = [
        event
        for event in events[saw.seq :]
        if isinstance(event, e.ControlRequestSent)
        and (event.broker, event.to) == (saw.broker, broker)
    ]
    before = [one for one in requests if one.seq < until.seq]
    after = requests[len(before) :]
    if not before or before[-1].request != "LeaderAndIsr":
        return False
    if after and (after[0].request != "UpdateMetadata" or after[0].cause > until.seq):
        return False
    role = _last_role(before[-1], until, events)
    if role is None or not lacks(FETCHER_SHUTDOWN_ENDS_FETCH, role, events):
        return False
    ended = _end_of_a_fetcher(role, events)
    if ended is None:
        return False
    waited_us = min(ended.t, until.t) - role.t
    return until.t - saw.t - waited_us < SOON_US


def _last_role(
    request: e.ControlRequestSent, until: AnyEvent, events: Sequence[AnyEvent]
) -> AnyEvent | None:
    """The last role that the thread of this LeaderAndIsr took; None if it did something else."""
    thread, last = "", None
    for event in events[request.seq : until.seq]:
        if event.broker != request.to:
            continue
        if isinstance(event, e.LeaderAndIsr) and event.cause == request.seq:
            thread = event.thread
        if thread and event.thread == thread:
            last = event
    return last if isinstance(last, e.BecomesLeader | e.BecomesFollower) else None


def _end_of_a_fetcher(role: AnyEvent, events: Sequence[AnyEvent]) -> AnyEvent | None:
    """The end of the first fetcher thread that ended after this role, if a fetch of it was in
    flight all the time."""
    ended = next(
        (
            event
            for event in events[role.seq :]
            if isinstance(event, e.FetcherStopped) and event.broker == role.broker
        ),
        None,
    )
    if ended is None:
        return None
    own = [
        event
        for event in events[: ended.seq]
        if (event.broker, event.thread) == (ended.broker, ended.thread)
    ]
    in_flight = bool(own) and isinstance(own[-1], e.FetchSent) and own[-1].seq < role.seq
    return ended if in_flight else None
