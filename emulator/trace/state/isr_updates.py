"""Leaders' attempts to change an ISR: what was decided, what carried it, how it ended.

The same for both propagation paths: a leader that writes to ZooKeeper itself, and one that asks the
controller.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.events import ROLLED_BACK
from emulator.trace.values import TopicPartition

STUCK_US = 1_000_000
"""A decision without an outcome for so long is stuck."""


class Attempt(msgspec.Struct):
    """One try of a leader to change an ISR, and how it ended (None: the trace ends first, or it
    blocks or is pending for ever); `requests`: those to the controller that carried it.
    `is_void`: its leadership ended, or the topic, before its outcome was known.
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
        """The last event that removed the partition from somebody's metadata."""
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
        """A proposal that stays pending, or goes out again, is still tried; an answer that is
        ignored was to an older one."""
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
        """What this broker tried under its old leadership does not hold it up any more."""
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
        """Partitions whose leader was refused, or has waited too long, and can do no more."""
        waiting = {
            partition
            for partition, attempts in self.attempts.items()
            if attempts[-1].ended is None
            and not attempts[-1].is_void
            and now_us - attempts[-1].started.t > STUCK_US
        }
        return sorted(waiting | set(self._refused))
