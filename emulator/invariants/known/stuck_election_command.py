"""A command for a partition that never had a leader is never executed and never deleted."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.invariants.nothing_is_left_to_do import StillThere
from emulator.trace import events as e
from emulator.trace.events import AnyEvent

_COMMAND = "/admin/preferred_replica_election"
_MARK = "IllegalState: nothing is known of the leader of "


class StuckElectionCommand(Hazard):
    """The controller looks up the leader in its cache before the election, which throws if there is
    none (KafkaController.scala@2.6.3 processReplicaLeaderElection,
    fetchPendingPreferredReplicaElections, verified in the bytecode). The znode stays, so no later
    command can be written, and every new controller fails on it and gives up."""

    name = "stuck election command"
    about = (
        "A preferred election through the znode names a partition that never had a live replica: "
        "looking up its leader throws. The command stays, and every fail-over fails."
    )
    breaks = (
        "a controller is there",
        "metadata converges",
        "nothing is left to do",
        "replicas return to isr",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """An election failed in this way after the command was written, or the last fail-over
        did."""
        if isinstance(violation, StillThere) and violation.path == _COMMAND:
            return any(_throws(event) for event in events[violation.facts[1] :])
        for event in reversed(events):
            if isinstance(event, e.ControllerElected):
                return False
            if _throws(event) and isinstance(event, e.ThreadFailed) and event.what == "election":
                return True
        return False


def _throws(event: AnyEvent) -> bool:
    return isinstance(event, e.ThreadFailed) and event.error.startswith(_MARK)
