"""The machine of the recordings: two cores, shared by a cluster and its test driver.

The load of a machine (emulator.worlds.machine_load). When a driver performs an action for the
first time, it occupies the cores for a while before and after, which delays other work. If more
than three processes run cold code (for their first logs, roles and fetches), everyone is slower.
Live clusters simulate the same load, because this machine's own load differs from the recorder's.
The durations are drawn; this module knows no particular action.
"""

from __future__ import annotations

from emulator.conformance.jvm_client import JvmService
from emulator.kernel.scheduler import Kernel, Task
from emulator.worlds.latency import JVM, Latencies
from zk.wire import Service

USUAL = 3
CROWDED = 750
"""What each process beyond three that runs cold code adds to the time of all work, in thousandths:
the table's rows were fitted to three brokers."""
BESIDE_US = 100_000
"""Those that make their first logs at most so far apart slow each other."""


class RecorderLoad:
    """The time until which the driver keeps the cores busy, and until when each process runs cold
    code."""

    def __init__(self, kernel: Kernel, latencies: Latencies) -> None:
        self._kernel, self._latencies = kernel, latencies
        self.until_us = 0
        self._cold_until: dict[str, int] = {}
        """By process."""
        self._crowd_until: dict[str, int] = {}

    def prepare(self, action: str, at_us: int) -> None:
        busy_us = self._latencies("stimulus_busy", action)

        def take() -> None:
            self.until_us = at_us + busy_us

        if busy_us:
            self._kernel.world.lane("machine").call_at(at_us - busy_us, take)

    def delay_us(self, actor: str) -> int:
        left_us = self.until_us - self._kernel.now
        return left_us * self._latencies("busy_share", actor) // 1000 if left_us > 0 else 0

    def work_us(self, purpose: str, actor: str) -> int:
        us = self._latencies.at(self._kernel.now, purpose, actor)
        if not self._cold_until or purpose in JVM:
            return us  # boots have their recorded durations
        return self._crowded(us, self._cold_until, self._kernel.now)

    def _crowded(self, us: int, until: dict[str, int], at_us: int) -> int:
        processes = sum(end_us > at_us for end_us in until.values())
        return us * (1000 + CROWDED * max(0, processes - USUAL)) // 1000

    async def charge(self, name: str, task: Task) -> None:
        process, since_us = task.process.name, self._kernel.now
        if self._latencies.is_crowded(name, process):
            us = self._latencies(name, process)
            self._occupy(self._crowd_until, process, us)
            self._occupy(self._cold_until, process, us)
            await self._kernel.sleep(us)
            # Those that begin later count as well, so this is known only now.
            us = self._crowded(us, self._crowd_until, since_us - BESIDE_US) - us
            self._occupy(self._crowd_until, process, us)
        else:
            us = self.work_us(name, process)
        if self._latencies.was_cold(name, process):
            self._occupy(self._cold_until, process, us)
        await self._kernel.sleep(us)

    def _occupy(self, until: dict[str, int], process: str, us: int) -> None:
        until[process] = max(until.get(process, 0), self._kernel.now + us)

    def paced(self, service: Service) -> Service:
        return JvmService(service, self.work_us)
