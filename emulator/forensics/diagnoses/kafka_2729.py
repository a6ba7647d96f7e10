"""A leader whose cached version is outdated, so that its ISR updates fail (KAFKA-2729)."""

from __future__ import annotations

from emulator.forensics.diagnoses.rejections import RejectedUpdates


class StuckLeader(RejectedUpdates):
    """The leader lost its session or was paused, and meanwhile another broker wrote the state
    without notifying it. ZooKeeper refuses the leader's writes because of its cached version, and
    it keeps serving (Partition.scala "Cached zkVersion ... skip updating ISR")."""

    is_own = False
    cure = (
        "restart the broker, or elect another controller (delete /controller): it sends every"
        " leader its current state; fixed step by step up to 2.7, where the controller writes"
    )
