"""Up to 2.3 a controller forgets the leader epoch that a reassignment raised (KAFKA-9212)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks, missing_members
from emulator.kafka.profiles.guards.controller import BUMPED_EPOCH_REMEMBERED
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.partitions import Partitions


class ForgottenEpoch(Hazard):
    """KafkaController.scala@2.3.1 updateLeaderEpoch writes the epoch but does not update the
    context."""

    name = "KAFKA-9212"
    about = (
        "A reassignment raises the leader epoch in ZooKeeper but not in the controller's context. "
        "Metadata has the old version until the state is read for another reason. A follower that "
        "starts meanwhile is sent the old epoch, and its leader fences it."
    )
    breaks = (
        "controller knows states",
        "followers fetch",
        "metadata converges",
        "replicas return to isr",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The newest state differs from its predecessor only in a leader epoch that is one higher,
        and its writer runs a version that does not update the context. Followers that do not
        fetch have been sent an epoch from before such a state, since then."""
        if violation.partition is None:
            return False
        written = Partitions()
        for event in events:
            if isinstance(event, e.ZkTransaction):
                written.on_zk_transaction(event)
        states = written.of(violation.partition).states
        forgotten = [
            (before, after)
            for before, after in pairwise(states)
            if (after.leader, after.isr) == (before.leader, before.isr)
            and after.leader_epoch == before.leader_epoch + 1
            and lacks(BUMPED_EPOCH_REMEMBERED, events[after.seq], events)
        ]
        if violation.invariant in ("followers fetch", "replicas return to isr"):
            outdated = {
                event.broker
                for before, after in forgotten
                for event in events[after.seq :]
                if isinstance(event, e.BecomesFollower)
                and (event.partition, event.leader_epoch)
                == (violation.partition, before.leader_epoch)
            }
            return bool(forgotten) and missing_members(violation) <= outdated
        return any(after is states[-1] for _, after in forgotten)
