"""What a world gives its hosts and clients beside kernel, network and ZooKeeper's faults."""

from __future__ import annotations

from typing import Protocol

from emulator.kernel.scheduler import Process
from zk.wire import Service


class WorldServices(Protocol):
    """ZooKeeper, wall clock and chance of one world."""

    def service_for(self, client: str) -> Service:
        """ZooKeeper as this process (`broker-1`) reaches it."""
        ...

    def wall_ms(self) -> int:
        """For time stamps inside znodes."""
        ...

    def pause_process(self, process: Process) -> None: ...

    def resume_process(self, process: Process) -> None: ...

    def client_start_us(self, client: str) -> int:
        """How long a new client needs to get going."""
        ...

    def draw_assignment(self, below: int) -> int:
        """A number below another, for a topic whose replicas nobody chose."""
        ...

    def handover_jitter_us(self, producer: str) -> int:
        """How late a producer's driver hands a record over."""
        ...

    def client_draw(self, purpose: str, actor: str) -> int:
        """See emulator.worlds.clients.producer.Draw."""
        ...
