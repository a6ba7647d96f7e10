"""A follower as its leader knows it, and the rules that decide about it. Plain values, plain
functions.

What a search wants to branch on is here: who is in sync, who is not, where the high watermark may
go. Coroutines only drive these. Sources: cluster/Replica.scala@2.6.3,
cluster/Partition.scala@2.6.3; spec §3.2-§3.5.
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
    """Which of these rules a version has, as it has its guards (spec §3.2-§3.8).
    `lag_messages_max`: how far behind a member may be, where the version asks for that (0.8)."""

    lag_messages_max: int | None = None
    caught_up_by_last_fetch: bool = True
    caught_up_time_reset: bool = True
    hw_waits_for_caught_up: bool = True
    join_past_epoch_start: bool = True
    stay_at_log_end: bool = True
    acks_are_all_or_one: bool = True

    @classmethod
    def of(cls, guards: Set[Guard], lag_messages_max: int) -> Rules:
        """Those of a version."""
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
    """The leader's state about one remote replica. Offsets, and times in milliseconds of the
    leader's clock."""

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
        """A fetch from `fetch_offset` arrived at `now_ms`; the leader's LEO was `leader_end_offset`
        before the read. Caught up at time t: some fetch offset reached the LEO that the leader had
        at t (KAFKA-4485). In 0.8 every fetch counts (logEndOffsetUpdateTimeMs)."""
        # The LEO before the read: records that are appended during the read do not count against
        # the follower.
        if fetch_offset >= leader_end_offset or rules.lag_messages_max is not None:
            if now_ms > self.last_caught_up_time_ms:
                self.last_caught_up_time_ms = now_ms
        # A busy follower that always trails a little is caught up as of its previous fetch: it has
        # now all that there was then (KAFKA-4485).
        elif (
            rules.caught_up_by_last_fetch and fetch_offset >= self.last_fetch_leader_log_end_offset
        ):
            self.last_caught_up_time_ms = max(self.last_caught_up_time_ms, self.last_fetch_time_ms)
        # Set, not raised: a follower that truncated fetches from further back.
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = leader_end_offset
        self.last_fetch_time_ms = now_ms

    def caught_up_until(self, now_ms: int) -> None:
        """Fetches that changed nothing else went on until then, each from the leader's LEO."""
        # Not back: a fetch of another session may have been recorded since.
        if now_ms > self.last_fetch_time_ms:
            self.last_fetch_time_ms = now_ms
        if now_ms > self.last_caught_up_time_ms:
            self.last_caught_up_time_ms = now_ms

    def reset_last_caught_up_time(
        self, leader_end_offset: int, now_ms: int, caught_up_time_ms: int
    ) -> None:
        """The broker became leader, or its epoch moved (resetLastCaughtUpTime)."""
        self.last_fetch_leader_log_end_offset = leader_end_offset
        self.last_fetch_time_ms = now_ms
        self.last_caught_up_time_ms = caught_up_time_ms

    def forget_offsets(self) -> None:
        """The broker was not leader before: nothing is known of where the follower is."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_log_end_offset = UNKNOWN_OFFSET
        # Not `last_caught_up_time_ms`: members keep the whole lag time that they have been given.
        self.last_fetch_time_ms = self.last_sent_high_watermark = 0


def is_follower_in_sync(
    follower_end_offset: int,
    high_watermark: int,
    leader_epoch_start_offset: int | None,
    rules: Rules = LATEST,
) -> bool:
    """Whether a follower may join the ISR: it has all that is committed, and has passed the offset
    at which the leader's epoch began (KAFKA-7128). The lag time is not consulted."""
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
    `max_lag_ms` ago. One that has the leader's LEO stays whatever its fetches look like
    (KAFKA-7152). In 0.8 also one that is too many messages behind."""
    # All times are of the leader's own clock: the follower's does not matter.
    # Strictly: at the limit itself a replica stays, and still holds the high watermark back.
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
    """Whether every follower in the ISR is known, and is at the leader's LEO."""
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
    """The smallest LEO among the leader, the ISR, and those outside it that are caught up
    (KAFKA-4485)."""
    lowest = leader_end_offset
    # -1: a lag is never below 0, so nobody outside the ISR is waited for (up to 0.10.1).
    wait_ms = max_lag_ms if rules.hw_waits_for_caught_up else -1
    for replica in remotes:
        # The same limit as the shrink, but `<=`: a replica exactly at the limit still counts.
        if replica.log_end_offset < lowest and (
            now_ms - replica.last_caught_up_time_ms <= wait_ms or replica.broker in isr
        ):
            lowest = replica.log_end_offset
    return lowest
