"""What a world provides to its hosts and clients besides kernel, network and ZooKeeper's faults."""

from __future__ import annotations

from typing import Protocol

from emulator.kernel.scheduler import Process
from zk.wire import Service


class WorldServices(Protocol):
    """ZooKeeper, wall clock and random numbers of one world."""

    def service_for(self, client: str) -> Service:
        """ZooKeeper for this process (`broker-1`)."""
        ...

    def wall_ms(self) -> int:
        """For timestamps in znodes."""
        ...

    def pause_process(self, process: Process) -> None: ...

    def resume_process(self, process: Process) -> None: ...

    def client_start_us(self, client: str) -> int:
        """How long a new client takes to start."""
        ...

    def draw_assignment(self, below: int) -> int:
        """A number below another, for the replicas of topics without a given assignment."""
        ...

    def handover_jitter_us(self, producer: str) -> int:
        """The delay with which a producer's driver hands over a record."""
        ...

    def client_draw(self, purpose: str, actor: str) -> int:
        """See emulator.worlds.clients.producer.Draw."""
        ...
