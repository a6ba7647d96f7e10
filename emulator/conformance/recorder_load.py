"""The machine of the recordings: two cores, shared by a cluster and its test driver.

The load of a machine (emulator.worlds.machine_load). When a driver performs an action for the
first time, it occupies the cores for a while before and after, which delays other work. A process
that runs cold code (for its first logs, roles and fetches) occupies a core; if several do, everyone
else is slower. Live clusters simulate the same load, because this machine's own load differs from
the recorder's. The durations are drawn; this module knows no particular action.
"""

from __future__ import annotations

from emulator.conformance.jvm_client import JvmService
from emulator.kernel.scheduler import Kernel, Task
from emulator.worlds.latency import Latencies
from zk.wire import Service

SLOWER = 1200
"""What each process that runs cold code adds to the time of other work, in thousandths of it. The
first one adds nothing: a core is free. While five brokers created their first logs, 150 to 450 ms
after the first topic, a second one took 15 to 246 ms until its first LeaderAndIsr, median 104 (17
recorded); in 24 s old clusters 16 to 44, median 24 (8)."""


class RecorderLoad:
    """The time until which the driver keeps the cores busy, and until when each process runs cold
    code."""

    def __init__(self, kernel: Kernel, latencies: Latencies) -> None:
        self._kernel, self._latencies = kernel, latencies
        self.until_us = 0
        self._cold_until: dict[str, int] = {}
        """By process."""

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
        if not self._cold_until or self._latencies.is_paced(purpose):
            return us  # a paced row was fitted to brokers that do the same beside each other
        self._cold_until = {p: end_us for p, end_us in self._cold_until.items() if end_us > now_us}
        return us * (1000 + SLOWER * max(0, len(self._cold_until) - 1)) // 1000

    async def charge(self, name: str, task: Task) -> None:
        process = task.process.name
        us = self.work_us(name, process)
        if self._latencies.was_cold(name, process):
            before_us = self._cold_until.get(process, 0)
            self._cold_until[process] = max(before_us, self._kernel.now + us)
        await self._kernel.sleep(us)

    def paced(self, service: Service) -> Service:
        return JvmService(service, self.work_us)
