"""An ISR change that no broker is notified of.

Owns this pattern: a leader wrote a state, and no broker's metadata shows its ISR although more time
went by than a notification may take. It works on ISRs: what 0.8 logs has no ZooKeeper version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emulator.forensics.diagnoses.base import Diagnosed, Diagnosis, hear
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.values import TopicPartition

PATIENCE_US = 75_000_000
"""A change waits for quiet, 60 s at most, and is looked at every 2.5 s."""


class ChangeNotAnnounced(Diagnosis):
    """Up to 0.8 a leader that changes its ISR tells nobody; later a notification was lost. Brokers
    show clients an ISR that is no longer so, until the next election."""

    cure = (
        "elect another controller (delete /controller): it sends every broker all states;"
        " fixed in 0.9, where leaders write a notification"
    )

    def cases(self, events: Sequence[AnyEvent]) -> Iterator[Diagnosed]:
        look = _Look()
        hear(events, look.partitions, look)
        end_us = events[-1].t if events else 0
        for name, state in sorted(look.untold.items()):
            if end_us - state.from_us < PATIENCE_US:
                continue
            was, now = (",".join(map(str, isr)) for isr in (look.shown[name], state.isr))
            yield Diagnosed(
                name=self.name,
                broker=state.leader,
                partitions=(name,),
                from_us=state.from_us,
                to_us=None,
                seen=(
                    f"leader {state.leader} wrote ISR [{now}] of {name}, and"
                    f" {(end_us - state.from_us) / 1e6:.0f} s later every broker still shows"
                    f" [{was}]"
                ),
                ended="no broker was notified",
                cure=self.cure,
                facts=(state.seq,),
            )


class _Look:
    """What is shown, and which newest state is not."""

    def __init__(self) -> None:
        self.partitions = Partitions()
        self.partitions.listen(self._written)
        self.shown: dict[TopicPartition, tuple[int, ...]] = {}
        self.untold: dict[TopicPartition, State] = {}

    def _written(self, partition: Partition, state: State) -> None:
        self.untold.pop(partition.name, None)
        known = self.shown.get(partition.name)
        if state.by_leader and known is not None and set(known) != set(state.isr):
            self.untold[partition.name] = state

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for state in event.states:
            waiting = self.untold.get(state.partition)
            self.shown[state.partition] = state.isr
            if waiting is not None and set(state.isr) == set(waiting.isr):
                del self.untold[state.partition]
        for name in event.removed:
            self.shown.pop(name, None)
            self.untold.pop(name, None)
