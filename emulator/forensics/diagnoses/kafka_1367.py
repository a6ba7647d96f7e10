"""An ISR change that no broker is notified of (KAFKA-1367).

Owns this pattern: a leader wrote a state, and no broker's metadata shows its ISR although more time
went by than a notification may take. It works on ISRs: what 0.8 logs has no ZooKeeper version.
"""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition

PATIENCE_US = 75_000_000
"""A change waits for quiet, 60 s at most, and is looked at every 2.5 s."""


class ChangeNotAnnounced(Diagnosis):
    """Up to 0.8 a leader that changes its ISR tells nobody; later a notification was lost. Brokers
    show clients an ISR that is no longer so, until the next election."""

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
