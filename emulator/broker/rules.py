"""Which rules about followers a version of Kafka has.

From its guards, once for a broker. A struct, and so in a file of its own: `replica`, where the
rules are, may be compiled (`emulator.compiled`).
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from emulator.profiles.guards.base import Guard
from emulator.profiles.guards.isr import (
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
