"""The machine of the recordings: two cores, shared by a cluster and its test driver.

The load of a machine (emulator.worlds.machine_load). When a driver performs an action for the
first time, it occupies the cores for a while before and after, which delays other work. Live
clusters simulate the same load, because this machine's own load differs from the recorder's. The
durations are drawn; this module knows no particular action.
"""

from __future__ import annotations

from emulator.conformance.jvm_client import JvmService
from emulator.kernel.scheduler import Kernel
from zk.model.link import Latency
from zk.wire import Service


class RecorderLoad:
    """The time until which the cores are busy (`until_us`), and the resulting delay."""

    def __init__(self, kernel: Kernel, draw: Latency) -> None:
        self._kernel, self._draw, self.until_us = kernel, draw, 0

    def prepare(self, action: str, at_us: int) -> None:
        busy_us = self._draw("stimulus_busy", action)

        def take() -> None:
            self.until_us = at_us + busy_us

        if busy_us:
            self._kernel.world.lane("machine").call_at(at_us - busy_us, take)

    def delay_us(self, actor: str) -> int:
        left_us = self.until_us - self._kernel.now
        return left_us * self._draw("busy_share", actor) // 1000 if left_us > 0 else 0

    def paced(self, service: Service) -> Service:
        return JvmService(service, self._draw)
