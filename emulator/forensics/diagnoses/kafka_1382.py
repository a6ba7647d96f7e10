"""A leader whose ISR update was written without its knowledge (KAFKA-1382)."""

from __future__ import annotations

from emulator.forensics.diagnoses.rejections import RejectedUpdates


class OwnWriteNotRecognised(RejectedUpdates):
    """The connection broke after ZooKeeper had written. The client repeats the write, and the
    expected version is gone. Only ZooKeeper's own log distinguishes this from KAFKA-2729."""

    is_own = True
    needs = ("server", "zookeeper")
    cure = (
        "restart the broker, or elect another controller (delete /controller): it sends every"
        " leader its current state; fixed in 0.8.2 for writes that find their own data"
    )
