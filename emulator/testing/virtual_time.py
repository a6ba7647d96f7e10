"""A bare kernel in virtual time, for tests of code that blocks on kernel primitives.

It has only the kernel and one process, no Kafka.
"""

from __future__ import annotations

from emulator.kernel.scheduler import NEVER, Body, Kernel, Task
from emulator.trace.sink import Sink


class VirtualTime:
    """Threads of one process, and a clock that jumps."""

    def __init__(self) -> None:
        self.sink = Sink()
        self.kernel = Kernel(self.sink)
        self.process = self.kernel.process("test")

    @property
    def now_ms(self) -> int:
        """Milliseconds since the world began."""
        return self.kernel.now // 1000

    def spawn(self, thread: str, body: Body) -> Task:
        """Start a thread."""
        return self.process.spawn(thread, body)

    def run(self, ms: int | None = None) -> None:
        """Let time pass; by default until nothing is left to run."""
        self.kernel.run(NEVER if ms is None else self.kernel.now + ms * 1000)

    def __enter__(self) -> VirtualTime:
        return self

    def __exit__(self, *_: object) -> None:
        self.kernel.close()
