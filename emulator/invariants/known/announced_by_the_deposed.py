"""A controller that was replaced announces a state that its successor does not know."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, decided
from emulator.invariants.metadata_never_moves_back import MovesBack
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class AnnouncedByTheDeposed(Hazard):
    """Only writes of a controller are fenced (from 2.1 on). A broker obeys its UpdateMetadata until
    it has a request of the next controller (KafkaApis.scala handleUpdateMetadataRequest)."""

    name = "announced by a deposed controller"
    about = (
        "A leader changes an ISR after a new controller has read or written the state. The deposed "
        "controller does not know its end, reads the change and announces it. Then the new one "
        "announces what it knows."
    )
    breaks = ("metadata never moves back",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The older controller knew the newer version, and the newer controller knew nothing newer
        than the older version, which it had read or written, when it announced that."""
        if not isinstance(violation, MovesBack):
            return False
        newer, older = events[violation.facts[0]], events[violation.facts[1]]
        assert isinstance(newer, e.MetadataCacheUpdated)
        assert isinstance(older, e.MetadataCacheUpdated)
        if newer.sender_epoch >= older.sender_epoch:
            return False
        deposed_knew = _known(violation, newer.sender, events[: newer.seq])
        # What it learns while its request waits is not in it.
        announced = events[: decided(older.seq, events) + 1]
        return violation.version_before in deposed_knew and _known(
            violation, older.sender, announced
        )[-1:] == [violation.version]


def _known(violation: MovesBack, controller: int, events: Sequence[AnyEvent]) -> list[int]:
    """The versions of the partition's state that this controller has read or written, in order."""
    return [
        event.zk_version
        for event in events
        if isinstance(event, e.ControllerCacheUpdated)
        and (event.broker, event.partition) == (controller, violation.partition)
    ]
