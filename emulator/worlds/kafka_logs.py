"""Access to real Kafka's logs: a world does not read logs itself; its caller passes a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from emulator.trace.events import AnyEvent

ReadKafkaLogs: TypeAlias = Callable[[Path, int], Sequence[AnyEvent]]
"""(folder of a broker, its id): its events, with the wall clock's microseconds as their time."""


def no_logs(folder: Path, broker: int) -> Sequence[AnyEvent]:
    """The reader for runs without real Kafka."""
    raise AssertionError(f"{folder}: nobody reads the logs of broker {broker}")
