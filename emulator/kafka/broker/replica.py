"""A leader's state of a follower, and the rules that use it: plain values and plain functions.

Searches branch on these: which replicas are in sync, and where the high watermark may go.
Coroutines only apply them. Sources: cluster/Replica.scala@2.6.3, cluster/Partition.scala@2.6.3;
spec §3.2-§3.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import msgspec

from emulator.kafka.profiles.guards.base import Guard
from emulator.kafka.profiles.guards.isr import (
    ACKS_ARE_ALL_OR_ONE,
    CAUGHT_UP_BY_LAST_FETCH,
    CAUGHT_UP_TIME_RESET,
    HW_WAITS_FOR_CAUGHT_UP,
    JOIN_PAST_EPOCH_START,
    LAG_BY_TIME_ONLY,
    STAY_AT_LOG_END,
)


class Rules(msgspec.Struct, frozen=True, gc=False):
    """The rules that a version has, by its guards (spec §3.2-§3.8). `lag_messages_max`: how many
    messages an ISR member may be behind, in versions with that rule (0.8)."""

    lag_messages_max: int | None = None
    caught_up_by_last_fetch: bool = True
    caught_up_time_reset: bool = True
    hw_waits_for_caught_up: bool = True
    join_past_epoch_start: bool = True
    stay_at_log_end: bool = True
    acks_are_all_or_one: bool = True

    @classmethod
    def of(cls, guards: Set[Guard], lag_messages_max: int) -> Rules:
        """The rules of a version."""
        return cls(
            None if LAG_BY_TIME_ONLY in guards else lag_messages_max,
            CAUGHT_UP_BY_LAST_FETCH in guards,
            CAUGHT_UP_TIME_RESET in guards,
            HW_WAITS_FOR_CAUGHT_UP in guards,
            JOIN_PAST_EPOCH_START in guards,
            STAY_AT_LOG_END in guards,
            ACKS_ARE_ALL_OR_ONE in guards,
        )


LATEST = Rules()
UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class Replica:
    """The leader's state of one follower: offsets, and times in milliseconds of the leader's
    clock."""

    broker: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = 0
    last_fetch_time_ms: int = 0
    last_caught_up_time_ms: int = 0
    last_sent_high_watermark: int = 0

    def update_fetch_state(
        self,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        leader_end_offset: int,
        rules: Rules = LATEST,
    ) -> None:
        """A fetch from `fetch_offset` arrived at `now_ms`; `leader_end_offset` was the leader's LEO
        before the read. A follower is caught up at time t if a fetch offset has reached the
        leader's LEO of time t (KAFKA-4485). In 0.8 every fetch counts (logEndOffsetUpdateTimeMs).
        """
        # The LEO before the read: records appended during the read do not count against the
        # follower.
        if fetch_offset >= leader_end_offset or rules.lag_messages_max is not None:
            if now_ms > self.last_caught_up_time_ms:
                self.last_caught_up_time_ms = now_ms
        # A busy follower that always trails a little is caught up as of its previous fetch: it now
        # has all records that existed then (KAFKA-4485).
        elif (
            rules.caught_up_by_last_fetch and fetch_offset >= self.last_fetch_leader_log_end_offset
        ):
            self.last_caught_up_time_ms = max(self.last_caught_up_time_ms, self.last_fetch_time_ms)
        # Set, not raised: after a truncation a follower fetches from a lower offset.
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = leader_end_offset
        self.last_fetch_time_ms = now_ms

    def caught_up_until(self, now_ms: int) -> None:
        """Until then the follower kept fetching at the leader's LEO, which changed only these
        times."""
        # Never backwards: a fetch in another session may have been recorded since.
        if now_ms > self.last_fetch_time_ms:
            self.last_fetch_time_ms = now_ms
        if now_ms > self.last_caught_up_time_ms:
            self.last_caught_up_time_ms = now_ms

    def reset_last_caught_up_time(
        self, leader_end_offset: int, now_ms: int, caught_up_time_ms: int
    ) -> None:
        """The broker became leader, or got a new epoch (resetLastCaughtUpTime)."""
        self.last_fetch_leader_log_end_offset = leader_end_offset
        self.last_fetch_time_ms = now_ms
        self.last_caught_up_time_ms = caught_up_time_ms

    def forget_offsets(self) -> None:
        """The broker was not leader before: the follower's offsets are unknown."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_log_end_offset = UNKNOWN_OFFSET
        # `last_caught_up_time_ms` stays: ISR members keep the full lag time that they got.
        self.last_fetch_time_ms = self.last_sent_high_watermark = 0


def is_follower_in_sync(
    follower_end_offset: int,
    high_watermark: int,
    leader_epoch_start_offset: int | None,
    rules: Rules = LATEST,
) -> bool:
    """Whether a follower may join the ISR: it has all committed records and has reached the start
    of the leader's epoch (KAFKA-7128). The lag time does not matter."""
    if follower_end_offset < high_watermark:
        return False
    return not rules.join_past_epoch_start or (
        leader_epoch_start_offset is not None and follower_end_offset >= leader_epoch_start_offset
    )


def is_follower_out_of_sync(
    replica: Replica,
    leader_end_offset: int,
    now_ms: int,
    max_lag_ms: int,
    rules: Rules = LATEST,
) -> bool:
    """Whether an ISR member has to leave: it lacks records, and was last caught up more than
    `max_lag_ms` ago. A member at the leader's LEO stays, no matter when it fetched (KAFKA-7152). In
    0.8 also a member that is too many messages behind.
    """
    # All times are from the leader's clock: the follower's clock does not matter. Strict: at the
    # limit itself a replica stays, and still holds back the high watermark.
    late = now_ms - replica.last_caught_up_time_ms > max_lag_ms
    if rules.lag_messages_max is not None and replica.log_end_offset >= 0:
        late = late or leader_end_offset - replica.log_end_offset > rules.lag_messages_max
    return late and not (rules.stay_at_log_end and replica.log_end_offset == leader_end_offset)


def all_at(
    leader_end_offset: int,
    isr: tuple[int, ...],
    leader: int | None,
    remotes: Mapping[int, Replica],
) -> bool:
    """Whether every follower in the ISR is known and at the leader's LEO."""
    for broker in isr:
        if broker != leader and (
            broker not in remotes or remotes[broker].log_end_offset != leader_end_offset
        ):
            return False
    return True


def high_watermark_allowed(
    leader_end_offset: int,
    remotes: Iterable[Replica],
    isr: tuple[int, ...],
    now_ms: int,
    max_lag_ms: int,
    rules: Rules = LATEST,
) -> int:
    """The smallest LEO among the leader, the ISR, and caught-up replicas outside it
    (KAFKA-4485)."""
    lowest = leader_end_offset
    # -1: a lag is never negative, so no replica outside the ISR counts (up to 0.10.1).
    wait_ms = max_lag_ms if rules.hw_waits_for_caught_up else -1
    for replica in remotes:
        # The limit of the shrink rule, but with `<=`: a replica exactly at the limit still counts.
        if replica.log_end_offset < lowest and (
            now_ms - replica.last_caught_up_time_ms <= wait_ms or replica.broker in isr
        ):
            lowest = replica.log_end_offset
    return lowest
