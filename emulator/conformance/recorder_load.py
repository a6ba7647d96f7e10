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
"""The ranges of latencies were fitted to clusters of so many brokers."""
CROWDED = 750
"""What each further process that runs cold code adds to the time of all work, in thousandths."""
BESIDE_US = 100_000
"""First logs that are made at most so far apart slow each other: a broker is busy with what its
first roles bring for longer than with the log itself."""


def slowed(us: int, processes: int) -> int:
    """How long work takes while so many processes run cold code."""
    return us * (1000 + CROWDED * max(0, processes - USUAL)) // 1000


class RecorderLoad:
    """The time until which the driver keeps the cores busy, and until when each process runs cold
    code."""

    def __init__(self, kernel: Kernel, latencies: Latencies) -> None:
        self._kernel, self._latencies = kernel, latencies
        self.until_us = 0
        self._cold_until: dict[str, int] = {}
        """By process."""
        self._logs_until: dict[str, int] = {}
        """The same for its first logs alone; those that have ended stay."""

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
        now_us = self._kernel.now
        us = self._latencies.at(now_us, purpose, actor)
        if not self._cold_until:
            return us  # nearly always; this is called for each message
        self._cold_until = {p: end_us for p, end_us in self._cold_until.items() if end_us > now_us}
        # A boot has its recorded duration, whatever else ran.
        return us if purpose in JVM else slowed(us, len(self._cold_until))

    async def charge(self, name: str, task: Task) -> None:
        process, since_us = task.process.name, self._kernel.now
        if self._latencies.is_crowded(name, process):
            us = self._latencies(name, process)
            self._occupy(self._logs_until, process, us)
            self._occupy(self._cold_until, process, us)
            await self._kernel.sleep(us)
            # Those that begin later count as well, so what they add is known only now.
            beside = sum(end_us > since_us - BESIDE_US for end_us in self._logs_until.values())
            us = slowed(us, beside) - us
            self._occupy(self._logs_until, process, us)
        else:
            us = self.work_us(name, process)
        if self._latencies.was_cold(name, process):
            self._occupy(self._cold_until, process, us)
        await self._kernel.sleep(us)

    def _occupy(self, until: dict[str, int], process: str, us: int) -> None:
        until[process] = max(until.get(process, 0), self._kernel.now + us)

    def paced(self, service: Service) -> Service:
        return JvmService(service, self.work_us)
