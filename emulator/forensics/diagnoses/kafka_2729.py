"""A leader that ZooKeeper has overtaken, and that rejects its own ISR updates (KAFKA-2729)."""

from __future__ import annotations

from emulator.forensics.diagnoses.rejections import RejectedUpdates


class StuckLeader(RejectedUpdates):
    """The leader lost its session, or was paused; meanwhile another broker wrote the state. It
    was not notified: its cached version makes ZooKeeper refuse its own writes, and it goes on
    serving (Partition.scala "Cached zkVersion ... skip updating ISR")."""

    is_own = False
    cure = (
        "restart the broker, or elect another controller (delete /controller): it sends every"
        " leader its current state; fixed step by step up to 2.7, where the controller writes"
    )
