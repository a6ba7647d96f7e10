"""Leaders' attempts to change an ISR: the decision, the requests and the outcome.

Covers both propagation paths: the leader writes to ZooKeeper itself, or it asks the controller.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.events import ROLLED_BACK
from emulator.trace.values import TopicPartition

STUCK_US = 1_000_000
"""A decision without an outcome after this time is stuck."""


class Attempt(msgspec.Struct):
    """One attempt of a leader to change an ISR, and its outcome (None: blocked or pending when the
    trace ends). `requests`: the AlterIsr requests that contained it. `is_void`: the leadership or
    the topic ended before the outcome was known.
    """

    started: e.IsrUpdateStarted
    ended: e.IsrUpdated | e.IsrUpdateRejected | e.AlterIsrFailed | None = None
    requests: list[e.AlterIsrSent] = []
    is_void: bool = False


class IsrUpdates:
    """All attempts, by partition and in order."""

    def __init__(self) -> None:
        self.attempts: dict[TopicPartition, list[Attempt]] = {}
        self.rejected = 0
        self.forgotten: dict[TopicPartition, int] = {}
        """The last event that removed the partition from a broker's metadata."""
        self._refused: dict[TopicPartition, int] = {}

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        self._give_up(event.partition, event.broker)
        self.attempts.setdefault(event.partition, []).append(Attempt(event))

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        self._end(event)
        self._refused.pop(event.partition, None)

    def on_isr_update_rejected(self, event: e.IsrUpdateRejected) -> None:
        self.rejected += 1
        self._refused[event.partition] = event.broker
        self._end(event)

    def on_alter_isr_sent(self, event: e.AlterIsrSent) -> None:
        for partition in event.partitions:
            attempts = self.attempts.get(partition)
            if attempts and attempts[-1].started.broker == event.broker and not attempts[-1].ended:
                attempts[-1].requests.append(event)

    def on_alter_isr_failed(self, event: e.AlterIsrFailed) -> None:
        """A proposal that stays pending or is resubmitted is still being attempted. An ignored
        response belongs to an older proposal."""
        self.rejected += 1
        if event.outcome == ROLLED_BACK:
            self._end(event)

    def _end(self, event: e.IsrUpdated | e.IsrUpdateRejected | e.AlterIsrFailed) -> None:
        for attempt in reversed(self.attempts.get(event.partition, [])):
            if attempt.started.broker == event.broker:
                attempt.ended = attempt.ended or event
                return

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._end_leadership(event.partition, event.broker)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._end_leadership(event.partition, event.broker)

    def _end_leadership(self, partition: TopicPartition, broker: int) -> None:
        """Attempts of the broker's old leadership no longer count as stuck."""
        self._give_up(partition, broker)
        if self._refused.get(partition) == broker:
            del self._refused[partition]

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for partition in event.removed:
            self.forgotten[partition] = event.seq
            self._refused.pop(partition, None)
            for attempt in self.attempts.get(partition, ()):
                attempt.is_void |= attempt.ended is None

    def _give_up(self, partition: TopicPartition, broker: int) -> None:
        attempts = self.attempts.get(partition)
        if attempts and attempts[-1].started.broker == broker and attempts[-1].ended is None:
            attempts[-1].is_void = True

    def stuck(self, now_us: int) -> list[TopicPartition]:
        """Partitions whose leader was refused or has waited too long, and cannot make progress."""
        waiting = {
            partition
            for partition, attempts in self.attempts.items()
            if attempts[-1].ended is None
            and not attempts[-1].is_void
            and now_us - attempts[-1].started.t > STUCK_US
        }
        return sorted(waiting | set(self._refused))
