"""Up to 0.11 one partition that a follower lost fails all of its fetch (KAFKA-5758)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.following import UNASSIGNED_FETCH_IS_EMPTY
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import CoreState


class WholeFetchFails(Hazard):
    """A leader throws NotAssignedReplicaException for a broker without an assigned replica, and
    the whole fetch fails (Partition.scala@0.10.2.2 updateReplicaLogReadResult). A replica that
    moves away while its broker has no session is not stopped, and is fetched as long as that
    process runs."""

    name = "KAFKA-5758"
    about = (
        "A replica moves away from a broker that is not registered just then, so it is never "
        "stopped there. The broker goes on fetching it, and the leader fails the whole fetch: none "
        "of the broker's replicas with this leader returns to an ISR, and a reassignment that "
        "waits for one of them never ends."
    )
    breaks = ("replicas return to isr", "nothing is left to do")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Each replica that is missing in the ISR was last fetched together with a partition that
        its broker has no assigned replica of. (A reassignment that never ends names no brokers, so
        those that are missing are looked up.)"""
        name = violation.partition
        if name is None:
            return False
        state, leaders = CoreState(), dict[int, AnyEvent]()
        fetched = dict[tuple[int, int], e.FetchSent]()
        for event in events:
            state(event)
            if isinstance(event, e.BecomesLeader) and event.partition == name:
                leaders[event.broker] = event
            elif isinstance(event, e.FetchSent):
                fetched[event.broker, event.leader] = event
        now, assignments = state.partitions.of(name).now, state.znodes.assignments()
        if now is None or now.leader not in leaders:
            return False

        def fails(broker: int) -> bool:
            fetch = fetched.get((broker, now.leader))
            partitions = {it.partition for it in fetch.offsets} if fetch is not None else set()
            # A deleted partition is refused alone, so it fails nothing.
            existing = partitions & assignments.keys()
            return name in existing and any(broker not in assignments[it] for it in existing)

        missing = set(assignments.get(name, ())) - set(now.isr)
        return (
            bool(missing)
            and all(map(fails, missing))
            and lacks(UNASSIGNED_FETCH_IS_EMPTY, leaders[now.leader], events)
        )
