"""An ISR change of which no broker is notified (KAFKA-1367).

The pattern: a leader wrote a state, and no broker's metadata has its ISR within the longest time
that a notification takes. It compares ISRs, because 0.8 does not log ZooKeeper versions.
"""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition

PATIENCE_US = 75_000_000
"""A change waits for a quiet period, at most 60 s, and is checked every 2.5 s."""


class ChangeNotAnnounced(Diagnosis):
    """Up to 0.8 a leader notifies nobody of its ISR changes; later a notification was lost. Brokers
    return an outdated ISR to clients until the next election."""

    needs = ("state-change", "server")
    cure = (
        "elect another controller (delete /controller): it sends every broker all states;"
        " fixed in 0.9, where leaders write a notification"
    )

    def prepare(self) -> None:
        self._shown: dict[TopicPartition, tuple[int, ...]] = {}
        self._last: dict[TopicPartition, State] = {}
        self.state.partitions.listen(self._written)

    def _written(self, partition: Partition, state: State) -> None:
        name, before = partition.name, self._last.get(partition.name)
        self._last[name] = state
        if before is not None:
            self.end(name, written(state), "another state took its place")
        known = self._shown.get(name)
        if state.by_leader and known is not None and set(known) != set(state.isr):
            was, now = (",".join(map(str, isr)) for isr in (known, state.isr))
            self.begin(
                name,
                written(state),
                f"leader {state.leader} wrote ISR [{now}] of {name}, and for more than"
                f" {PATIENCE_US / 1e6:.0f} s every broker still showed [{was}]",
                name,
                patience_us=PATIENCE_US,
            )

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for state in event.states:
            name = state.partition
            self._shown[name] = state.isr
            written = self._last.get(name)
            if written is not None and set(written.isr) == set(state.isr):
                self.end(name, event, f"broker {event.broker} was the first to show it")
        for name in event.removed:
            self._shown.pop(name, None)
            self.forget(name)
