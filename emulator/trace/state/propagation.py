"""How long an ISR change takes to be true: from the leader's decision to whoever has to know it.

Owns one account per change: decided, effective (the leader has it committed), in the controller's
cache, in each broker's metadata. It counts as known when that version or a later one is there:
whoever skipped a version is not ignorant of it any more. A broker that stood still or was not there
meanwhile is not counted: its delay is the fault's. The same for both propagation paths; nothing
here knows how a change travels.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.values import TopicPartition

STUCK_US = 1_000_000
"""A decision without an outcome for so long is stuck."""

ROLLED_BACK = "rolled back"
"""The outcome after which nothing is pending: the next fetch may try again."""


class Change(msgspec.Struct):
    """One decision of a leader, and when it came to be known; microseconds, None: not yet.
    `awaits`: brokers whose metadata has yet to show it."""

    broker: int
    version: int
    decided_us: int
    awaits: dict[int, None]
    effective_us: int | None = None
    controller_us: int | None = None
    shown_us: list[int] = []

    @property
    def is_over(self) -> bool:
        """Nobody is left who could learn it."""
        return self.effective_us is not None and self.controller_us is not None and not self.awaits


class Propagation:
    """All changes of all partitions. Times are lengths, in microseconds, in the order in which they
    were known."""

    def __init__(self) -> None:
        self.effective_us: list[int] = []
        self.controller_us: list[int] = []
        self.metadata_us: list[int] = []
        self.rejected = 0
        self._open: dict[TopicPartition, list[Change]] = {}
        self._trying: dict[TopicPartition, Change] = {}
        self._refused: dict[TopicPartition, int] = {}
        self._holds: dict[TopicPartition, dict[int, None]] = {}
        self._still: dict[int, None] = {}

    # -- the leader --------------------------------------------------------------------------------

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        holds = self._holds.get(event.partition, {})
        awaits = {broker: None for broker in holds if broker not in self._still}
        change = Change(event.broker, event.zk_version + 1, event.t, awaits)
        self._drop(event.partition, event.broker)
        self._trying[event.partition] = change
        self._open.setdefault(event.partition, []).append(change)

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        change = self._trying.pop(event.partition, None)
        self._refused.pop(event.partition, None)
        if change is None or change.broker != event.broker:
            return
        change.effective_us = event.t - change.decided_us
        self.effective_us.append(change.effective_us)
        self._take(change)
        self._close(event.partition)

    def on_isr_update_rejected(self, event: e.IsrUpdateRejected) -> None:
        self.rejected += 1
        self._refused[event.partition] = event.broker
        self._drop(event.partition, event.broker)

    def on_alter_isr_failed(self, event: e.AlterIsrFailed) -> None:
        """A proposal that stays pending, or goes out again, is still tried; an answer that is
        ignored was to an older one."""
        self.rejected += 1
        if event.outcome == ROLLED_BACK:
            self._drop(event.partition, event.broker)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._begins_anew(event.partition, event.broker)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._begins_anew(event.partition, event.broker)

    def _begins_anew(self, partition: TopicPartition, broker: int) -> None:
        """What this broker tried under its old leadership does not hold it up any more."""
        self._drop(partition, broker)
        if self._refused.get(partition) == broker:
            del self._refused[partition]

    def _drop(self, partition: TopicPartition, broker: int) -> None:
        """A decision of this broker that came to nothing."""
        change = self._trying.get(partition)
        if change is not None and change.broker == broker:
            del self._trying[partition]
            self._open[partition].remove(change)

    # -- who has to know it ------------------------------------------------------------------------

    def on_controller_cache_updated(self, event: e.ControllerCacheUpdated) -> None:
        for change in self._open.get(event.partition, ()):
            if change.version <= event.zk_version and change.controller_us is None:
                change.controller_us = event.t - change.decided_us
                if change.effective_us is not None:
                    self.controller_us.append(change.controller_us)
        self._close(event.partition)

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for state in event.states:
            self._holds.setdefault(state.partition, {})[event.broker] = None
            for change in self._open.get(state.partition, ()):
                if change.version <= state.zk_version and event.broker in change.awaits:
                    del change.awaits[event.broker]
                    self._shown(change, event.t - change.decided_us)
            self._close(state.partition)
        for partition in event.removed:
            self._deleted(partition)

    def _deleted(self, partition: TopicPartition) -> None:
        """What was to be known of it is of no interest any more."""
        for history in (self._open, self._trying, self._refused, self._holds):
            history.pop(partition, None)

    def _shown(self, change: Change, took_us: int) -> None:
        if change.effective_us is None:
            change.shown_us.append(took_us)
        else:
            self.metadata_us.append(took_us)

    def _take(self, change: Change) -> None:
        """Who knew it before the leader did counts once it is known to be true."""
        if change.controller_us is not None:
            self.controller_us.append(change.controller_us)
        self.metadata_us += change.shown_us
        change.shown_us = []

    def _close(self, partition: TopicPartition) -> None:
        if any(change.is_over for change in self._open.get(partition, ())):
            left = [change for change in self._open[partition] if not change.is_over]
            self._open[partition] = left

    # -- who is there ------------------------------------------------------------------------------

    def on_stimulus(self, event: e.Stimulus) -> None:
        if event.do in ("pause", "kill", "crash", "terminate"):
            self._still[event.broker] = None
            self._forgive(event.broker)
        elif event.do == "resume":
            self._still.pop(event.broker, None)

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        """A new process has an empty cache."""
        self._still.pop(event.broker, None)
        self._forgive(event.broker)
        for holds in self._holds.values():
            holds.pop(event.broker, None)

    def _forgive(self, broker: int) -> None:
        for partition, changes in self._open.items():
            for change in changes:
                change.awaits.pop(broker, None)
            self._close(partition)

    # -- at the end --------------------------------------------------------------------------------

    def awaited(self) -> int:
        """Changes in force that the controller, or some broker's metadata, has yet to learn."""
        return sum(
            change.effective_us is not None for changes in self._open.values() for change in changes
        )

    def stuck(self, now_us: int) -> list[TopicPartition]:
        """Partitions whose leader was refused, or has waited too long, and can do no more."""
        waiting = {p for p, c in self._trying.items() if now_us - c.decided_us > STUCK_US}
        return sorted(waiting | set(self._refused))
