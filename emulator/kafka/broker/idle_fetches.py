"""Shortcuts for idle partitions: a leader skips work whose result cannot have changed.

Kafka reads every partition for each fetch of each follower, and checks every ISR in each run of
isr-expiration. For an idle partition, both change only times. This module owns both shortcuts. A
follower's fetch that would change only its times is *idle*: it is not read, its session stores the
time, and the follower gets that time when the partition wakes. Every change of a partition wakes it
first. The trace is the same without the shortcuts (tests/sim/test_idle_fetches_change_nothing.py).
"""

from __future__ import annotations

from emulator.kafka.broker.fetch_session import CachedPartition
from emulator.kafka.broker.partition_ports import LeaderPartition
from emulator.kafka.broker.replica import Replica, Rules, all_at
from emulator.kafka.protocol.messages import NO_EPOCH, FetchPartition


class IdleFetches:
    """The idle fetches of one partition."""

    __slots__ = ("_fetches", "_hosted", "_rules", "is_caught_up")

    def __init__(self, hosted: LeaderPartition, rules: Rules) -> None:
        self._hosted, self._rules = hosted, rules
        self._fetches: tuple[CachedPartition, ...] = ()
        self.is_caught_up = False
        """Nothing has changed since `check_caught_up` found that no member could leave the ISR."""

    def idle(self, follower: int, fetch: CachedPartition) -> None:
        """Stop reading a follower's fetch if it can change only times: the follower is an ISR
        member at the leader's LEO and has received the high watermark."""
        hosted = self._hosted
        log, replica = hosted.leader_log, hosted.remotes.get(follower)
        if (
            log is not None
            and replica is not None
            and fetch.is_noop(log, replica)
            and fetch.request.current_leader_epoch in (hosted.leader_epoch, NO_EPOCH)
            and follower in hosted.isr
            # A writer wakes the partition before it waits for the lock: a fetch that went idle
            # after that would miss the change.
            and hosted.lock.readable
        ):
            fetch.session.idle(fetch, replica)
            # It may still be listed: its own follower woke it, and now it is idle again.
            if fetch not in self._fetches:
                self._fetches += (fetch,)

    def wake(self) -> None:
        """The partition is about to change: its fetches are read again."""
        self.is_caught_up = False
        if self._fetches:
            fetches, self._fetches = self._fetches, ()
            for fetch in fetches:
                fetch.session.wake(fetch)

    def wake_follower(self, replica: Replica) -> None:
        """This follower's state has changed."""
        self.is_caught_up = False
        for fetch in self._fetches:
            if fetch.idle_replica is replica:
                fetch.session.wake(fetch)

    def record_noop_fetch(
        self, replica: Replica, fetch: FetchPartition, now_ms: int, leader_leo: int
    ) -> bool:
        """Record the times of a fetch that changes neither the follower's LEO, nor its log start,
        nor the ISR. False for any other fetch."""
        offset, start = fetch.fetch_offset, fetch.log_start_offset
        if (
            replica.log_end_offset != offset
            or replica.log_start_offset != start
            or replica.broker not in self._hosted.isr
            # An idle fetch of the same follower in another session has to report its times first.
            or (self._fetches and any(f.idle_replica is replica for f in self._fetches))
        ):
            return False
        replica.update_fetch_state(offset, start, now_ms, leader_leo, self._rules)
        return True

    def check_caught_up(self) -> bool:
        """Update `is_caught_up`: every member is at the leader's LEO and thus stays in the ISR, no
        matter when it last fetched (KAFKA-7152). False while a writer holds the lock, because
        Kafka's isr-expiration waits for it.
        """
        hosted = self._hosted
        log = hosted.leader_log
        self.is_caught_up = hosted.lock.readable and (
            log is None
            or (
                self._rules.stay_at_log_end
                and all_at(log.log_end_offset, hosted.isr, hosted.leader_replica_id, hosted.remotes)
            )
        )
        return self.is_caught_up
