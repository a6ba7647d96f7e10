"""The controller's port to its broker.

Controller and broker do not import each other; they meet only in this interface.
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
    """The broker's process and settings as the controller sees them."""

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
