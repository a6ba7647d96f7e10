"""Watch handlers: a fired watch only puts an event on the controller's queue.

Source: controller/KafkaController.scala@2.6.3 (the handlers at its end); spec §2.2.
"""

from __future__ import annotations

from collections.abc import Callable


class ChildChangeHandler:
    """The children of `path` changed."""

    def __init__(self, path: str, changed: Callable[[], None]) -> None:
        self.path = path
        self._changed = changed

    def handle_child_change(self) -> None:
        self._changed()


class NodeChangeHandler:
    """The znode at `path` was created, deleted or changed; an event without a callback is
    ignored."""

    def __init__(
        self,
        path: str,
        *,
        created: Callable[[], None] | None = None,
        deleted: Callable[[], None] | None = None,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self.path = path
        self._created, self._deleted, self._changed = created, deleted, changed

    def handle_creation(self) -> None:
        if self._created is not None:
            self._created()

    def handle_deletion(self) -> None:
        if self._deleted is not None:
            self._deleted()

    def handle_data_change(self) -> None:
        if self._changed is not None:
            self._changed()
