"""What the controller needs of the broker that it runs in.

The controller and the broker do not import each other; this port is where they touch.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Set
from typing import Protocol

from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.profiles.base import Profile
from emulator.kafka.profiles.guards.base import Guard
from emulator.kernel.scheduler import Kernel, Task
from emulator.trace.events import AnyEvent


class Host(Protocol):
    """The broker's process and settings, as far as the controller knows them."""

    broker: int
    kernel: Kernel
    config: KafkaConfig
    profile: Profile
    guards: Set[Guard]

    def now_ms(self) -> int: ...

    def emit(self, event_type: Callable[..., AnyEvent], *fields: object) -> None: ...

    def failed(self, what: str, error: Exception) -> None: ...

    def spawn(self, thread: str, body: Coroutine[object, None, object]) -> Task: ...

    def schedule(
        self,
        name: str,
        body: Callable[[], Coroutine[object, None, None]],
        period_ms: int,
        delay_ms: int = 0,
    ) -> Task: ...

    def schedule_once(
        self, name: str, body: Callable[[], Coroutine[object, None, None]], delay_ms: int
    ) -> Task: ...
