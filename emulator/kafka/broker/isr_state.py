"""The ISR state of a leader while a change is pending, and the effect of responses.

There are three states: committed, or committed with one proposed expansion or one proposed shrink.
The high watermark and acks=all use the *maximal* ISR: it grows early and shrinks late, so it is
safe for either result of the proposal. Small copyable values and plain functions, so that searches
can branch on them; `leader_isr` drives them. Knows no lock, no request, no thread. Source:
cluster/Partition.scala@2.7.2 IsrState, handleAlterIsrResponse; spec §7.1, §7.5.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple

from emulator.kafka.broker.replica import (
    Replica,
    Rules,
    is_follower_in_sync,
    is_follower_out_of_sync,
)
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.alter_isr import (
    BACK_IF_NOT_ATTEMPTED,
    EQUAL_VERSION_IS_SUCCESS,
    MAXIMAL_ISR,
)
from emulator.kafka.profiles.guards.base import Guard
from zk.client.codec import LeaderAndIsr


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """No change is pending; only in this state may a change be proposed. `is_trie`: Kafka's Set had
    five members at some time (`isr_order`)."""

    isr: tuple[int, ...]
    is_trie: bool = False
    is_inflight: ClassVar[bool] = False

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return self.isr


@dataclass(frozen=True, slots=True)
class PendingExpandIsr:
    """An added replica is proposed; it counts for the high watermark at once."""

    isr: tuple[int, ...]
    new_in_sync_replica: int
    is_trie: bool = False
    is_inflight: ClassVar[bool] = True
    change: ClassVar[str] = "expand"

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return (*self.isr, self.new_in_sync_replica)

    @property
    def proposed(self) -> tuple[int, ...]:
        return self.maximal_isr


@dataclass(frozen=True, slots=True)
class PendingShrinkIsr:
    """Removed replicas are proposed; they count for the high watermark until the change is
    committed."""

    isr: tuple[int, ...]
    out_of_sync: tuple[int, ...]
    is_trie: bool = False
    is_inflight: ClassVar[bool] = True
    change: ClassVar[str] = "shrink"

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return self.isr

    @property
    def proposed(self) -> tuple[int, ...]:
        return tuple(b for b in self.isr if b not in self.out_of_sync)


PendingIsr = PendingExpandIsr | PendingShrinkIsr
IsrState = CommittedIsr | PendingIsr


def counted_isr(state: IsrState, guards: Container[Guard]) -> tuple[int, ...]:
    """The replicas that the high watermark and acks=all wait for."""
    return state.maximal_isr if MAXIMAL_ISR in guards else state.isr


def may_expand(
    state: IsrState,
    replica: Replica,
    high_watermark: int,
    leader_epoch_start_offset: int | None,
    rules: Rules,
) -> bool:
    """Whether this replica should be proposed (needsExpandIsr)."""
    return (
        # One change at a time: a second one would need the version that the first one will get.
        not state.is_inflight
        and replica.broker not in state.isr
        and is_follower_in_sync(
            replica.log_end_offset, high_watermark, leader_epoch_start_offset, rules
        )
    )


def out_of_sync_replicas(
    state: IsrState,
    leader: int,
    replica_of: Callable[[int], Replica],
    leader_end_offset: int,
    now_ms: int,
    max_lag_ms: int,
    rules: Rules,
) -> tuple[int, ...]:
    """Out-of-sync ISR members without the leader (getOutOfSyncReplicas); none while a change is
    pending."""
    if state.is_inflight:
        return ()
    return tuple(
        b
        for b in state.isr
        if b != leader
        and is_follower_out_of_sync(replica_of(b), leader_end_offset, now_ms, max_lag_ms, rules)
    )


class Outcome(Enum):
    """What a leader does with a response."""

    COMMITTED = "committed"
    IGNORED = "ignored"
    STAYS_PENDING = "stays pending"
    ROLLED_BACK = "rolled back"
    RESUBMITTED = "resubmitted"


class AnswerResult(NamedTuple):
    """A leader's state after a response, its version, and what it did."""

    state: IsrState
    zk_version: int
    outcome: Outcome


DEFINITIVE = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.FENCED_LEADER_EPOCH,
        Errors.INVALID_UPDATE_VERSION,
    }
)
"""Final errors: only a newer LeaderAndIsr ends the pending state."""

NOT_ATTEMPTED = frozenset({Errors.OPERATION_NOT_ATTEMPTED, Errors.INELIGIBLE_REPLICA})


def take_answer(
    state: IsrState,
    proposed: PendingIsr,
    leader_epoch: int,
    zk_version: int,
    answer: LeaderAndIsr | Errors,
    guards: Container[Guard],
) -> AnswerResult:
    """Apply the response to `proposed` (handleAlterIsrResponse). If the state is no longer the
    proposed one, something newer than the response has replaced it."""
    if state != proposed:
        return AnswerResult(state, zk_version, Outcome.IGNORED)
    if isinstance(answer, Errors):
        # Not attempted: nothing was written, and the ISR is unchanged (3.3).
        if answer in NOT_ATTEMPTED and BACK_IF_NOT_ATTEMPTED in guards:
            return AnswerResult(
                CommittedIsr(proposed.isr, proposed.is_trie), zk_version, Outcome.ROLLED_BACK
            )
        # Final: this leader's state is outdated, and only a LeaderAndIsr can update it. After any
        # other error it is unknown whether the change was written: the same proposal is sent again.
        definitive = answer in DEFINITIVE or (
            answer is Errors.INVALID_REQUEST and BACK_IF_NOT_ATTEMPTED in guards
        )
        outcome = Outcome.STAYS_PENDING if definitive else Outcome.RESUBMITTED
        return AnswerResult(proposed, zk_version, outcome)
    # An equal version: the change had been written before, and its first response was lost.
    too_old = answer.zk_version < zk_version or (
        EQUAL_VERSION_IS_SUCCESS not in guards and answer.zk_version == zk_version
    )
    # Another epoch: a LeaderAndIsr that supersedes this response is on its way.
    if answer.leader_epoch != leader_epoch or too_old:
        return AnswerResult(state, zk_version, Outcome.STAYS_PENDING)
    return AnswerResult(CommittedIsr(answer.isr), answer.zk_version, Outcome.COMMITTED)
