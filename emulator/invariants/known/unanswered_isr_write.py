"""From 2.8 on, a leader whose write to ZooKeeper throws waits forever for the callback."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from zk import paths
from zk.errors import Code


class UnansweredIsrWrite(Hazard):
    """ZkIsrManager.scala@2.8.2 submit calls back after the write, but not if it throws: the change
    stays pending until the next LeaderAndIsr with a greater epoch (spec §7.6). Never fixed in a
    version with ZooKeeper."""

    name = "unanswered ISR write"
    about = (
        "A leader's session ends while it writes an ISR. The write throws, so nobody is called "
        "back, and the change stays pending. If the controller is replaced meanwhile, no "
        "LeaderAndIsr with a greater epoch ends that."
    )
    breaks = ("replicas return to isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The session ended during the leader's last proposal, and it has been leader since."""
        name = violation.partition
        if name is None:
            return False
        path = paths.topic_partition_state(*name)
        proposer, unanswered = 0, False
        for event in events:
            match event:
                case (
                    e.BecomesLeader(partition=at)
                    | e.IsrUpdated(partition=at)
                    | e.AlterIsrFailed(partition=at)
                ) if at == name:
                    proposer, unanswered = 0, False
                case e.AlterIsrProposed(partition=at) if at == name:
                    proposer = event.broker
                case e.ZkReply(op="setData", path=at, code=Code.SESSION_EXPIRED) if at == path:
                    unanswered = unanswered or event.broker == proposer
        return unanswered
