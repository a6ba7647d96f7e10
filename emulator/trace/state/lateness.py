"""How long one follower's log was shorter than its leader's, at a stretch.

Owns the episodes of being behind: one begins with an append that the follower does not have yet and
ends when it has all that the leader has. Knows nothing of what the leader thinks of it.
"""

from __future__ import annotations

from emulator.trace import events as e
from emulator.trace.state.logs import Logs
from emulator.trace.values import TopicPartition


class Lateness:
    """Episodes of one replica; shown each append after `Logs` has taken it."""

    def __init__(self, logs: Logs, partition: TopicPartition, broker: int) -> None:
        self.logs, self.partition, self.broker = logs, partition, broker
        self.since_us: int | None = None
        self._longest_us = 0

    def look(self, event: e.RecordsAppended) -> None:
        """An append somewhere: it may begin or end an episode."""
        if event.partition != self.partition:
            return
        leader = self.logs.writer.get(self.partition, -1)
        behind = self.logs.of(self.partition, self.broker).leo < self.leo_of(leader)
        if behind and self.since_us is None:
            self.since_us = event.t
        elif not behind and self.since_us is not None:
            self._longest_us = self.longest_us(event.t)
            self.since_us = None

    def leo_of(self, broker: int) -> int:
        return self.logs.of(self.partition, broker).leo

    def longest_us(self, now_us: int) -> int:
        """The longest episode, the one that is under way included."""
        running = 0 if self.since_us is None else now_us - self.since_us
        return max(self._longest_us, running)
