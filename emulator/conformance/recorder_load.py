"""The machine of the recordings: two cores, shared by a cluster and its test driver.

The load of a machine (emulator.worlds.machine_load). When a driver performs an action for the
first time, it occupies the cores for a while before and after, which delays other work. If more
than three processes run cold code (for their first logs, roles and fetches), or a shell's JVM has
just done its work, everyone is slower.
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
SHELL = 1000
"""What a shell's JVM adds to the time of all work, in thousandths. In 17 elections after a shell
had deleted `/controller`, a broker's steps took twice as long as in some 50 others: from reading
`/controller` to its epoch 5 ms at the median instead of 2, from there to the attempt 8 instead of
4, from the attempt to the first step as controller 15 instead of 4. Steps from some 150 ms after
the deletion on took as long as in others."""
SHELL_US = 120_000
"""For how long after its request; 30 to 82 ms later the recorder notes that it has ended."""
BESIDE_US = 100_000
"""First logs that are made at most so far apart slow each other: a broker is busy with what its
first roles bring for longer than with the log itself."""

PROXIED = {"net_request", "net_response", "net_delayed_response"}
"""What brokers send each other, except a controller's requests: their latency was fitted to
recordings with proxies, too."""


def slowed(us: int, processes: int, *, beside_shell: bool = False) -> int:
    """How long work takes while so many processes, or a shell's JVM as well, need the cores."""
    return us * (1000 + CROWDED * max(0, processes - USUAL) + SHELL * beside_shell) // 1000


class RecorderLoad:
    """The time until which the driver keeps the cores busy, and until when each process runs cold
    code. `has_proxies`: between brokers, as the recorder has them for faults on links."""

    def __init__(self, kernel: Kernel, latencies: Latencies, *, has_proxies: bool = False) -> None:
        self._kernel, self._latencies, self._has_proxies = kernel, latencies, has_proxies
        self.until_us = 0
        self._shell_until_us = 0
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

    def shell_at(self, at_us: int) -> None:
        def runs() -> None:
            self._shell_until_us = at_us + SHELL_US

        self._kernel.world.lane("machine").call_at(at_us, runs)

    def delay_us(self, actor: str) -> int:
        left_us = self.until_us - self._kernel.now
        return left_us * self._latencies("busy_share", actor) // 1000 if left_us > 0 else 0

    def work_us(self, purpose: str, actor: str) -> int:
        now_us = self._kernel.now
        us = self._latencies.at(now_us, purpose, actor)
        if self._has_proxies and purpose in PROXIED and actor.startswith("broker-"):
            us += self._latencies("net_proxy", actor)
        beside_shell = now_us < self._shell_until_us
        if not self._cold_until and not beside_shell:
            return us  # nearly always; this is called for each message
        self._cold_until = {p: end_us for p, end_us in self._cold_until.items() if end_us > now_us}
        # A boot has its recorded duration, whatever else ran.
        if purpose in JVM:
            return us
        return slowed(us, len(self._cold_until), beside_shell=beside_shell)

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
