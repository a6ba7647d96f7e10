"""The load of another machine, imitated when a run is compared with a recording.

A world without one keeps its own timing: virtual time models an idle machine, live time
has the load of the machine that it runs on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.kernel.scheduler import Kernel, Task
from emulator.worlds.latency import Latencies
from zk.wire import Service


class MachineLoad(Protocol):
    """A model of latency, jitter and load."""

    def prepare(self, action: str, at_us: int) -> None:
        """An action with this name follows."""
        ...

    def shell_at(self, at_us: int) -> None:
        """A shell in a JVM of its own, which was started before, will act then."""
        ...

    def delay_us(self, actor: str) -> int:
        """The extra delay of work that needs a CPU core now."""
        ...

    def work_us(self, purpose: str, actor: str) -> int:
        """A duration drawn now; work takes longer while others need the cores, too."""
        ...

    async def charge(self, name: str, task: Task) -> None:
        """Charge a checkpoint of the core with its duration."""
        ...

    def paced(self, service: Service) -> Service:
        """Live time: a real ZooKeeper service with the request pace of clients on that machine."""
        ...


MachineLoadOf = Callable[[Kernel, Latencies], MachineLoad]
"""Makes one for a world: on its kernel, with its draws."""
