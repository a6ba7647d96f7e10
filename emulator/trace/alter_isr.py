"""Events of the path through the controller (KIP-497): a part of the closed vocabulary.

A proposal, the request that carries it, what the controller decides, and what the leader makes of
the answer where that is not the new ISR (`isr_updated` where it is). Everybody else finds them in
`events`; the rules for events are there too.
"""

from __future__ import annotations

from emulator.trace.event import Event
from emulator.trace.values import TopicPartition

IGNORED, ROLLED_BACK = "ignored", "rolled back"
"""Outcomes of a proposal: its answer came too late to mean anything; nothing is pending any more,
and the ISR is the old one."""

# -- replication: the ISR through the controller ---------------------------------------------------


class AlterIsrProposed(Event, frozen=True, gc=False):
    """The leader proposes an ISR to the controller, in place of version `zk_version`; `pending` is
    the name of its state until the answer."""

    partition: TopicPartition
    isr: tuple[int, ...]
    leader_epoch: int
    zk_version: int
    pending: str


class AlterIsrSent(Event, frozen=True, gc=False):
    """A broker's thread wrote AlterIsr to `controller`, with all that is proposed; `attempt` counts
    from 1."""

    controller: int
    partitions: tuple[TopicPartition, ...]
    broker_epoch: int
    attempt: int


class AlterIsrDecided(Event, frozen=True, gc=False):
    """The controller's answer for one partition of an AlterIsr of `sender`: `error` (NONE: `isr` is
    the partition's, as of `zk_version`). `proposed` is what was asked for."""

    partition: TopicPartition
    sender: int
    proposed: tuple[int, ...]
    error: str
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int


class AlterIsrRefused(Event, frozen=True, gc=False):
    """A whole AlterIsr of `sender` was refused: `error` is NOT_CONTROLLER, STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR, or UNSUPPORTED_VERSION (a broker before 2.7, which does not know it)."""

    sender: int
    partitions: tuple[TopicPartition, ...]
    error: str


class AlterIsrFailed(Event, frozen=True, gc=False):
    """The leader has an answer to its proposal, or no way to make it, and the ISR is not the new
    one: `error` is what it was told, `outcome` what it does (ignored: the state is another by now;
    stays pending: until the next LeaderAndIsr; rolled back; resubmitted)."""

    partition: TopicPartition
    change: str
    error: str
    outcome: str
    cached_zk_version: int
