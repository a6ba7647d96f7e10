"""A kernel with threads that write down what they do: the stage of the kernel's tests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from emulator.kernel.scheduler import Kernel, Process, Task, WakeUpDelays
from emulator.trace.sink import Sink

Body = Coroutine[Any, Any, Any]


class Stage:
    """One process named `p`; `heard` is the transcript of its threads."""

    def __init__(self, wake_up: WakeUpDelays | None = None) -> None:
        self.sink = Sink()
        self.kernel = Kernel(self.sink, wake_up=wake_up)
        self.process = self.kernel.process("p")
        self.heard: list[str] = []

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *error: object) -> None:
        self.kernel.close()

    def say(self, what: str) -> None:
        self.heard.append(what)

    def spawn(self, thread: str, body: Body, process: Process | None = None) -> Task:
        return (process or self.process).spawn(thread, body)

    def run(self, until_us: int | None = None) -> list[str]:
        """Let the threads run (to the end, or to a moment), and return their transcript."""
        if until_us is None:
            self.kernel.run()
        else:
            self.kernel.run(until_us)
        heard, self.heard = self.heard, []
        return heard

    async def says(self, *words: str, pause_us: int = 0) -> None:
        """A thread that says one word after the other, with pauses."""
        for word in words:
            self.say(word)
            await self.kernel.sleep(pause_us)

    def alone(self, body: Callable[[], Body]) -> None:
        """Run one thread to its end."""
        self.spawn("alone", body())
        self.kernel.run()


class FixedWakeUp:
    """How long threads take after a resume, or when a lock is free, as the test says; steps cost
    nothing."""

    def __init__(self, window_us: int, **threads_us: int) -> None:
        self._window_us, self._threads_us = window_us, threads_us
        self.waited: list[int] = []

    def thread(self, process: str, thread: str) -> int:
        return self._threads_us.get(thread, 0)

    def window(self, process: str, waiting: int) -> int:
        self.waited.append(waiting)
        return self._window_us

    def step(self, process: str, thread: str) -> int:
        return 0

    def unpark(self, process: str, thread: str) -> int:
        return self._threads_us.get(thread, 0)
