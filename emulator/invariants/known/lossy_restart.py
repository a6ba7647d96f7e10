"""A replica that lost records in a crash is treated as if it had them: KIP-903, KIP-966."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.followers_fetch import DoesNotFetch
from emulator.invariants.known.base import Hazard, missing_members
from emulator.invariants.replicas_return_to_isr import MissingReplicas
from emulator.invariants.truncations_spare_the_committed import CommittedRecordsTruncated
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import CoreState
from emulator.trace.state.fetches import thread_key
from emulator.trace.state.logs import missing
from emulator.trace.values import TopicPartition

_UNEXPECTED = "UnexpectedAppendOffset"


class LossyRestart(Hazard):
    """The ISR does not identify the process of a broker, and a start after a crash looks like any
    other. So the last member keeps its place whatever it has lost (KIP-966), and a member that had
    caught up joins although its process was replaced since (KIP-903). Never fixed in a version with
    ZooKeeper."""

    name = "lossy restart"
    about = (
        "A machine crashes and loses records, or a start cuts a damaged log. Its broker is still "
        "in the ISR, or joins it on the evidence of its old process. Once it leads, the lost "
        "records are gone (KIP-903, KIP-966)."
    )
    breaks = (
        "committed records survive",
        "hw within isr",
        "logs agree",
        "reads are consistent",
        "replicas return to isr",
        "followers fetch",
        "truncations spare the committed",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The broker came back from such a crash without its records and has not fetched them
        since; or such a broker has led the partition. Each replica that stays out of the ISR has
        given up fetching, because that leader's batches do not begin at its log end. A replica that
        truncates follows such a leader, whose new records have the epoch and offsets of lost ones.
        """
        if violation.partition is None:
            return False
        losses = _Losses(violation.partition)
        if isinstance(violation, MissingReplicas | DoesNotFetch):
            for event in events:
                losses.hear(event)
            return missing_members(violation) <= losses.without_fetcher()
        for event in events[: violation.facts[1] + 1]:
            losses.hear(event)
        if isinstance(violation, CommittedRecordsTruncated):
            # A thread goes on for a while when its partition already has another leader.
            fetched_from = _leader_of_thread(events[violation.facts[1]])
            return violation.leader in losses.gave_up or fetched_from in losses.gave_up
        return bool(losses.gave_up) or violation.broker in losses.short


def _leader_of_thread(event: AnyEvent) -> int:
    """From which broker the fetcher thread of an event fetches; -1: it is no fetcher thread."""
    key = thread_key(event.thread)
    return -1 if key is None else key[0]


class _Losses:
    """Brokers that restarted with a shorter log of one partition: `short`. `gave_up`: those
    that have led it without all committed records."""

    def __init__(self, partition: TopicPartition) -> None:
        self._partition, self._state = partition, CoreState()
        self._crashed: set[int] = set()
        self._damaged: set[int] = set()
        """Logs with a flipped bit: the next start truncates the log there, as Kafka does."""
        self._lossy_leaders: set[int] = set()
        """Brokers that lost records of this partition, and those that have copied their new ones:
        a follower of theirs may get a batch that begins before its own log end."""
        self._lossy_machines: set[int] = set()
        """Brokers that lost records of any partition, and those that truncated to copy theirs."""
        self.short: set[int] = set()
        self._stopped: set[int] = set()
        self._ended: set[tuple[int, int]] = set()
        self.gave_up: set[int] = set()

    def without_fetcher(self) -> set[int]:
        """Brokers that do not fetch the partition: it is marked failed there, or the thread to its
        leader has ended, which Kafka never restarts."""
        now = self._state.partitions.of(self._partition).now
        leader = now.leader if now is not None else -1
        return self._stopped | {broker for broker, other in self._ended if other == leader}

    def hear(self, event: AnyEvent) -> None:
        had = self._state.logs.of(self._partition, event.broker).leo
        self._state(event)
        match event:
            case e.ActionApplied(do="crash", parameters=lost) if lost.lose not in ("", "nothing"):
                self._crashed.add(event.broker)
                self._lossy_machines.add(event.broker)
            case e.BecomesLeader(partition=at) | e.BecomesFollower(partition=at) if (
                at == self._partition
            ):
                self._opened(event, had)
            case e.PartitionMarkedFailed(partition=at, reason=reason, leader=leader) if (
                at == self._partition and reason.startswith(_UNEXPECTED)
            ):
                # From KIP-461 (2.3) on only the partition fails.
                if leader in self._lossy_leaders:
                    self._stopped.add(event.broker)
            case e.ThreadFailed(what="ReplicaFetcherThread", error=error) if error.startswith(
                _UNEXPECTED
            ):
                # Before that the thread ends, and all its partitions stop fetching, including those
                # that lost nothing.
                if (ended := _leader_of_thread(event)) in self._lossy_machines:
                    self._ended.add((event.broker, ended))
            case e.ActionApplied(do="disk", parameters=damage) if damage.fault == "bit_flip":
                self._damaged.add(event.broker)
                self._lossy_machines.add(event.broker)
            case e.BrokerStarting():
                self._crashed |= self._damaged & {event.broker}
                self._ended = {one for one in self._ended if one[0] != event.broker}
            case e.LogTruncated() | e.RecordsAppended():
                self._copied(event)

    def _copied(self, event: e.LogTruncated | e.RecordsAppended) -> None:
        """A follower's log becomes that of its leader."""
        copy = self._state.replicas.of(event.partition, event.broker)
        source = -1 if copy is None else copy.leader
        if isinstance(event, e.LogTruncated):
            if source in self._lossy_machines:
                self._lossy_machines.add(event.broker)
        elif event.partition == self._partition:
            if not self._lacks(event.broker):
                self.short.discard(event.broker)
            if source in self._lossy_leaders:
                self._lossy_leaders.add(event.broker)

    def _opened(self, event: e.BecomesLeader | e.BecomesFollower, had: int) -> None:
        broker = event.broker
        self._stopped.discard(broker)
        if broker in self._crashed and event.leo < had:
            self.short.add(broker)
            self._lossy_leaders.add(broker)
        self._crashed.discard(broker)
        if isinstance(event, e.BecomesLeader) and broker in self.short and self._lacks(broker):
            self.gave_up.add(broker)

    def _lacks(self, broker: int) -> bool:
        committed = self._state.committed.of(self._partition)
        here = self._state.logs.of(self._partition, broker)
        return committed is not None and missing(committed.log, here) > 0
