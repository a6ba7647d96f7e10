"""Up to 2.1 a controller may miss a broker's restart (KAFKA-1120)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks, missing_members
from emulator.kafka.profiles.guards.controller import BROKER_EPOCHS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from zk import paths

_CHANGES = ("controller knows states", "metadata converges")
"""What a change of the ISR breaks that nobody announces."""


class MissesABounce(Hazard):
    """The watch on /brokers/ids only signals a change, and the controller compares ids
    (KafkaController.scala@1.0.2 BrokerChange). A registration that was deleted and recreated while
    the controller was busy looks unchanged (B12)."""

    name = "KAFKA-1120"
    about = (
        "A broker dies and returns before the busy controller has looked. The list of brokers is "
        "as before, so the controller sends the broker nothing about its partitions."
    )
    breaks = (
        "brokers are registered",
        "controller knows states",
        "followers fetch",
        "metadata converges",
        "replicas return to isr",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The violation's broker was away, and the controller did not notice; or each missing ISR
        member was, or the leader that it follows: that one does not know that it leads; or the
        leader that changed the ISR last: it ended before it announced the change."""
        unseen, missed, follows = set[int](), set[int](), dict[int, int]()
        changed_by = 0
        for event in events:
            match event:
                case e.ZkTransaction(op="create", path=at) if at == paths.broker_id(event.broker):
                    unseen.add(event.broker)
                case e.ControllerElected():
                    unseen, missed = set(), set()
                case e.BrokerStarting():
                    missed.discard(event.broker)
                    follows.pop(event.broker, None)
                case e.BecomesFollower(partition=violation.partition):
                    follows[event.broker] = event.leader
                case e.BecomesLeader(partition=violation.partition):
                    follows.pop(event.broker, None)
                case e.IsrUpdated(partition=violation.partition):
                    changed_by = event.broker
                case e.BrokerChange():
                    missed -= {*event.added, *event.deleted, *event.bounced}
                    unseen -= {*event.added, *event.bounced}
                    if lacks(BROKER_EPOCHS, event, events):
                        missed |= unseen & set(event.live)
                    unseen -= set(event.live)
        waits = {follower for follower, leader in follows.items() if leader in missed}
        if violation.invariant in _CHANGES and changed_by in missed:
            return True
        return violation.broker in missed | waits or missing_members(violation) <= missed | waits
