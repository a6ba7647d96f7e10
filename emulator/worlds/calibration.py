"""The load of another machine, which a world imitates when its run is compared with a recording.

A world without a calibration keeps its own time: virtual time has a machine with nothing else to
do, live time the machine that it runs on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.kernel.scheduler import Kernel
from zk.model.link import Latency
from zk.wire import Service


class Calibration(Protocol):
    """A model of latency, jitter and load."""

    def prepare(self, action: str, at_us: int) -> None:
        """An action of this name is going to be carried out then."""
        ...

    def delay_us(self, actor: str) -> int:
        """How much later something is that needs a core now."""
        ...

    def paced(self, service: Service) -> Service:
        """Live time: a real ZooKeeper service, at the pace that clients had on that machine."""
        ...


CalibrationOf = Callable[[Kernel, Latency], Calibration]
"""Makes one for a world: on its kernel, with its draws (purpose, actor)."""
