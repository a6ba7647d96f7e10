"""The possible next steps of one partition whose leader sends AlterIsr to the controller.

Owns the scope (replicas, versions and records), the messages in flight, and the text of a step. The
rules are the same functions that brokers and the controller run. As in the published model, a sent
message is never removed: it may arrive late, twice, or never. The time since a follower was caught
up is not part of the state but chosen freely at each step, so results hold for any timing. The
moves of one half depend only on that half, so each is computed once. Knows no search.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain, combinations
from typing import NamedTuple

import msgspec

from emulator.kafka.broker.isr_state import (
    CommittedIsr,
    IsrState,
    PendingExpandIsr,
    PendingIsr,
    PendingShrinkIsr,
    counted_isr,
    may_expand,
    out_of_sync_replicas,
    take_answer,
)
from emulator.kafka.broker.replica import Replica, Rules, high_watermark_allowed
from emulator.kafka.controller.alter_isr import validate
from emulator.kafka.controller.replica_state_machine import isr_without
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kafka.profiles.base import Profile
from emulator.kafka.profiles.guards.alter_isr import HW_AFTER_ALTER_ISR
from zk.client.codec import LeaderAndIsr
from zk.errors import Code
from zk.model.tree import Tree
from zk.ops import Create, SetData

LEADER = 1
NOW_MS, LONG_AGO_MS, LAG_MS = 1_000_000, 0, 30_000
REQUEST_VERSION = 2
_STATE = "/state"


class Scope(msgspec.Struct, frozen=True):
    """`versions`: the maximum number of writes by the controller; `offsets`: the maximum number of
    records."""

    replicas: int = 3
    versions: int = 4
    offsets: int = 2

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(range(LEADER, LEADER + self.replicas))


class Leader(NamedTuple):
    """The leader's half. `offsets`: the followers' log ends known to the leader, in replica
    order."""

    isr_state: IsrState
    zk_version: int
    leader_epoch: int
    epoch_start: int
    log_end: int
    high_watermark: int
    offsets: tuple[int, ...]


class Request(NamedTuple):
    """An AlterIsr request in flight, and the proposal that its response will refer to."""

    desired: LeaderAndIsr
    proposed: PendingIsr


class Answer(NamedTuple):
    """The controller's response to one proposal."""

    proposed: PendingIsr
    answer: LeaderAndIsr | Errors


class Move(NamedTuple):
    """A step of the leader: its description, the state after it, and the message it sends."""

    words: str
    leader: Leader
    request: Request | None = None


class Decision(NamedTuple):
    """A step of the controller: its state after it, and the message to the leader."""

    words: str
    cached: LeaderAndIsr
    answer: Answer | None = None
    update: LeaderAndIsr | None = None


class Steps:
    """All steps of one version of Kafka in one scope."""

    def __init__(self, scope: Scope, profile: Profile) -> None:
        self.scope, self.guards = scope, profile.guards
        lag_messages_max = int(profile.defaults.get("replica.lag.max.messages", "4000"))
        self._rules = Rules.of(profile.guards, lag_messages_max)
        self._followers = scope.brokers[1:]

    @cached_property
    def first(self) -> tuple[Leader, LeaderAndIsr]:
        """The initial state: all replicas are in sync, nothing was written."""
        isr = self.scope.brokers
        leader = Leader(CommittedIsr(isr), 0, 0, 0, 0, 0, (0,) * len(self._followers))
        return leader, LeaderAndIsr(LEADER, 0, isr, 0)

    # -- the leader --------------------------------------------------------------------------------

    def moves(self, leader: Leader) -> Iterator[Move]:
        """All steps that need no message."""
        isr = leader.isr_state.isr
        if leader.log_end < self.scope.offsets:
            longer = leader._replace(log_end=leader.log_end + 1)
            yield from self._with_hw("the leader appends a record", longer)
        replicas = self._replicas(leader, ())
        for place, (broker, offset) in enumerate(zip(self._followers, leader.offsets, strict=True)):
            if offset < leader.log_end:
                offsets = (*leader.offsets[:place], offset + 1, *leader.offsets[place + 1 :])
                words = f"broker {broker} fetches from offset {offset + 1}"
                yield from self._with_hw(words, leader._replace(offsets=offsets))
            if may_expand(
                leader.isr_state,
                replicas[broker],
                leader.high_watermark,
                leader.epoch_start,
                self._rules,
            ):
                words = f"that broker {broker} join"
                yield self._propose(leader, PendingExpandIsr(isr, broker), words)
        for late in _subsets(self._followers):
            out = self._out_of_sync(leader, late)
            if out and out == late:
                words = f"that broker {' and '.join(map(str, out))} leave"
                yield self._propose(leader, PendingShrinkIsr(isr, out), words)

    def _out_of_sync(self, leader: Leader, late: tuple[int, ...]) -> tuple[int, ...]:
        caught_up = tuple(b for b in self._followers if b not in late)
        return out_of_sync_replicas(
            leader.isr_state,
            LEADER,
            self._replicas(leader, caught_up).__getitem__,
            leader.log_end,
            NOW_MS,
            LAG_MS,
            self._rules,
        )

    def _propose(self, leader: Leader, proposed: PendingIsr, words: str) -> Move:
        desired = LeaderAndIsr(LEADER, leader.leader_epoch, proposed.proposed, leader.zk_version)
        pending = leader._replace(isr_state=proposed)
        words = f"the leader proposes {words} (version {leader.zk_version})"
        return Move(words, pending, Request(desired, proposed))

    def answered(self, leader: Leader, answer: Answer) -> Iterator[Move]:
        """The leader receives the controller's response."""
        outcome = take_answer(
            leader.isr_state,
            answer.proposed,
            leader.leader_epoch,
            leader.zk_version,
            answer.answer,
            self.guards,
        )
        after = leader._replace(isr_state=outcome.state, zk_version=outcome.zk_version)
        if after == leader:
            return
        words = f"the leader takes the answer {_shown(answer.answer)}"
        if isinstance(outcome.state, CommittedIsr) and HW_AFTER_ALTER_ISR in self.guards:
            yield from self._with_hw(words, after)
        else:
            yield Move(words, after)

    def becomes_leader(self, leader: Leader, update: LeaderAndIsr) -> Iterator[Move]:
        """The leader receives LeaderAndIsr, and applies it only with a greater leader epoch
        (Partition._make_leader)."""
        if update.leader_epoch <= leader.leader_epoch:
            return
        after = leader._replace(
            isr_state=CommittedIsr(update.isr),
            zk_version=update.zk_version,
            leader_epoch=update.leader_epoch,
            epoch_start=leader.log_end,
        )
        yield from self._with_hw(f"the leader takes LeaderAndIsr {_shown(update)}", after)

    def _with_hw(self, words: str, leader: Leader) -> Iterator[Move]:
        """Advance the high watermark as far as allowed, for each set of caught-up replicas outside
        the ISR.
        """
        isr = counted_isr(leader.isr_state, self.guards)
        reached: dict[int, Move] = {}
        for caught_up in _subsets(tuple(b for b in self._followers if b not in isr)):
            log, remotes = OffsetLog(leader.high_watermark), self._replicas(leader, caught_up)
            if leader.log_end:
                log.append_as_leader(leader.log_end, 1, leader.leader_epoch)
            allowed = high_watermark_allowed(
                leader.log_end, remotes.values(), isr, NOW_MS, LAG_MS, self._rules
            )
            if allowed > log.high_watermark:
                log.maybe_increment_high_watermark(allowed)
            after = leader._replace(high_watermark=log.high_watermark)
            more = f", high watermark {after.high_watermark}" if after != leader else ""
            reached.setdefault(after.high_watermark, Move(words + more, after))
        yield from reached.values()

    def _replicas(self, leader: Leader, caught_up: tuple[int, ...]) -> dict[int, Replica]:
        """The followers; all except those in `caught_up` were caught up long ago."""
        return {
            b: Replica(b, offset, last_caught_up_time_ms=NOW_MS if b in caught_up else LONG_AGO_MS)
            for b, offset in zip(self._followers, leader.offsets, strict=True)
        }

    # -- the controller ----------------------------------------------------------------------------

    def removals(self, cached: LeaderAndIsr) -> Iterator[Decision]:
        """The controller removes a follower from the ISR, and sends LeaderAndIsr to the leader."""
        if cached.zk_version >= self.scope.versions:
            return
        for broker in self._followers:
            if broker in cached.isr:
                written = _written(isr_without(cached, broker), cached.zk_version)
                assert written is not None
                words = f"the controller takes broker {broker} out: {_shown(written)}"
                yield Decision(words, written, update=written)

    def handled(self, cached: LeaderAndIsr, request: Request) -> Iterator[Decision]:
        """The controller receives AlterIsr; nothing beyond the scope."""
        desired, live = request.desired, self.scope.brokers
        decided = validate(desired, cached, live, REQUEST_VERSION, self.guards)
        if decided is None:
            if cached.zk_version >= self.scope.versions:
                return
            written = _written(desired, cached.zk_version)
            decided = Errors.INVALID_UPDATE_VERSION if written is None else written
        now = cached if isinstance(decided, Errors) else decided
        words = f"the controller answers {_isr_words(desired)} with {_shown(decided)}"
        yield Decision(words, now, answer=Answer(request.proposed, decided))

    # -- messages without effect -------------------------------------------------------------------

    def is_dead_answer(self, leader: Leader, message: Answer) -> bool:
        """Whether the leader will always ignore the response: versions and epochs only grow."""
        answer, proposed = message.answer, message.proposed
        if isinstance(answer, LeaderAndIsr):
            older_epoch = answer.leader_epoch < leader.leader_epoch
            return older_epoch or answer.zk_version < leader.zk_version
        return take_answer(proposed, proposed, 0, 0, answer, self.guards).state == proposed

    def is_dead_request(self, cached: LeaderAndIsr, request: Request) -> bool:
        """Whether the controller will always reject the request."""
        return request.desired.leader_epoch < cached.leader_epoch


def valid_high_watermark(leader: Leader, cached: LeaderAndIsr, scope: Scope) -> bool:
    """ValidHighWatermark: every replica that may be elected has all committed records."""
    return all(
        offset >= leader.high_watermark
        for broker, offset in zip(scope.brokers[1:], leader.offsets, strict=True)
        if broker in cached.isr
    )


def _written(desired: LeaderAndIsr, version: int) -> LeaderAndIsr | None:
    """The state in ZooKeeper after a conditional write expecting `version`; None: BadVersion."""
    tree = Tree()
    tree.create_session(1, 1000)
    tree.apply(Create(_STATE, b""), 1, 0)
    for _ in range(version):
        tree.apply(SetData(_STATE, b""), 1, 0)
    reply = tree.apply(SetData(_STATE, b"", desired.zk_version), 1, 0)[0]
    if reply.code is Code.BAD_VERSION:
        return None
    assert reply.stat is not None
    return msgspec.structs.replace(desired, zk_version=reply.stat.version)


def _subsets(brokers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(brokers, n) for n in range(len(brokers) + 1))


def _isr_words(state: LeaderAndIsr) -> str:
    return f"ISR {list(state.isr)} at version {state.zk_version}"


def _shown(answer: LeaderAndIsr | Errors) -> str:
    if isinstance(answer, Errors):
        return answer.name
    return f"{_isr_words(answer)}, epoch {answer.leader_epoch}"
