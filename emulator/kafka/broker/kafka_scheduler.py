"""KafkaScheduler: periodic tasks at a fixed rate, and how they end.

Owns when a task runs, not what it does. Instead of a pool of `background.threads`, each job has its
own task (docs/limits.md). Source: utils/KafkaScheduler.scala@2.6.3; spec §4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine

from emulator.kernel.scheduler import Body, Kernel, Task
from emulator.kernel.sync import Promise

Spawn = Callable[[str, Body], Task]
Job = Callable[[], Coroutine[object, None, None]]
"""One run of a task."""


class KafkaScheduler:
    """Fixed-rate tasks: missed runs are made up back to back, and the phase is kept."""

    def __init__(self, kernel: Kernel, spawn: Spawn) -> None:
        self._kernel, self._spawn = kernel, spawn
        self._stopped = False
        self._runs: dict[Promise[None], None] = {}

    def schedule(self, name: str, job: Job, period_ms: int, delay_ms: int = 0) -> Task:
        """Run `job` every `period_ms`. Kafka logs an exception of a run, and the task keeps its
        schedule."""
        kernel = self._kernel

        async def run() -> None:
            due = kernel.now + delay_ms * 1000
            while True:
                await kernel.sleep_until(due)
                if self._stopped:
                    return
                # Each run has its own causes: none of its events follow from the previous run.
                kernel.cause = -1
                ended = Promise[None](kernel)
                self._runs[ended] = None
                await job()
                del self._runs[ended]
                ended.resolve(None)
                # scheduleAtFixedRate: missed runs follow back to back, and the phase is kept
                # (recorded: eight runs within 50 ms after a blocked one).
                due += period_ms * 1000
                if due <= kernel.now:
                    await kernel.checkpoint("missed_run")

        return self._spawn(f"kafka-scheduler/{name}", run())

    def schedule_when(
        self, name: str, needed: Job, job: Job, period_ms: int, delay_ms: int
    ) -> Task:
        """As `schedule`, but without the runs that would find nothing to do: `needed` blocks until
        there is something, and the next scheduled run does it. That may be a run that is already
        due and would have come after the present step (`Kernel.behind_us`).
        """
        kernel = self._kernel

        async def run() -> None:
            turn = -1
            first_us, period_us = kernel.now + delay_ms * 1000, period_ms * 1000
            while True:
                await needed()
                from_us = kernel.now - kernel.behind_us
                # The next run at or after the present time (rounded up), and each run at most once.
                turn = max(turn + 1, -((first_us - from_us) // period_us))
                await kernel.sleep_until(first_us + turn * period_us)
                if self._stopped:
                    return
                await job()

        return self._spawn(f"kafka-scheduler/{name}", run())

    async def shutdown(self) -> None:
        """Start no more runs and wait for the current ones (executor.awaitTermination)."""
        self._stopped = True
        for ended in list(self._runs):
            await ended.wait()
