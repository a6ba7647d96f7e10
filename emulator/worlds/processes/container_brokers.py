"""Brokers in containers: started from this project's image and controlled through the Docker SDK.

They behave like `local_brokers.LocalBroker`: SIGKILL is the engine's kill, SIGSTOP its pause (the
freezer of the container's control group). A request to the engine takes tenths of a second, so each
container has its own thread, which carries out its orders one by one. Only a caller that needs a
result waits for it. Knows no cluster and no scenario.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.worlds.processes.local_brokers import GRACE_S, LOOK_US, STARTED, LoggedBroker
from zk.real.server_container import freeze

if TYPE_CHECKING:  # the Docker SDK takes half a second to import
    from docker.models.containers import Container

Make = Callable[[list[str]], "Container"]
"""A container that is to run `isr WORDS`, not started."""


class ContainerBroker(LoggedBroker):
    """One broker with its current container and process."""

    look_us = LOOK_US

    def __init__(self, broker: int, make: Make, log: Path) -> None:
        """Its output goes to `log`."""
        super().__init__(broker, log)
        self._make = make
        self._hands = ThreadPoolExecutor(1, f"container-of-broker-{broker}")
        self._words: list[str] = []
        self._container: Container | None = None
        self._reader: threading.Thread | None = None
        self._answers, self._over = threading.Event(), threading.Event()
        self._over.set()
        self._paused = False
        self._status = 0
        self._orders: list[Future[None]] = []

    # -- life --------------------------------------------------------------------------------------

    def launch(self, words: list[str]) -> None:
        """Start its next process: in the existing container if nothing changed, otherwise in a new
        one."""
        self._answers.clear()
        self._over.clear()
        self.stopped = False

        def launch() -> None:
            self._finish_reading()
            # A container keeps its arguments: another version, for example, needs another
            # container.
            if self._container is None or words != self._words:
                self._remove()
                self._words, self._container = words, self._make(words)
            # Attached before it starts, so that no line is missed.
            stream = self._container.attach_socket(params={"stdout": 1, "stderr": 1, "stream": 1})
            read = partial(self._read, stream, self._container)
            self._reader = threading.Thread(target=read)
            self._reader.start()
            self._container.start()

        self._order(launch)

    def _read(self, stream: Any, container: Container) -> None:
        """Read until the process ends."""
        from docker.utils.socket import frames_iter

        own = stream._sock
        try:
            with self._log.open("ab") as log:
                for _, chunk in frames_iter(stream, tty=False):
                    log.write(chunk)
                    log.flush()
                    if STARTED.encode() in chunk:
                        self._answers.set()
        finally:
            # The SDK returns a file on a socket: it is closed only if all three are.
            stream._response.close()
            stream.close()
            own.close()
            self._status = container.wait()["StatusCode"]
            self._paused = False
            self._over.set()

    def _order(self, order: Callable[[], None]) -> None:
        """Run this after all earlier orders."""
        self._check()
        self._orders.append(self._hands.submit(order))

    def _check(self) -> None:
        """Raise the error of a failed order, at the next order."""
        for order in [order for order in self._orders if order.done()]:
            self._orders.remove(order)
            order.result()

    @property
    def started(self) -> bool:
        """Whether its sockets respond. BrokerEnded if they never will."""
        if not self._answers.is_set():
            self.check_alive(is_dead=self.is_dead)
        return self._answers.is_set()

    @property
    def runs(self) -> bool:
        """Whether it has a process that was not stopped."""
        return not self.is_dead and not self.stopped

    @property
    def is_dead(self) -> bool:
        self._check()
        return self._over.is_set()

    def exit_code(self, timeout_s: float) -> int | None:
        """Negative: the signal that ended it; None while it runs."""
        if not self._over.wait(timeout_s):
            return None
        # As in a shell: 128 plus the signal's number.
        return 128 - self._status if self._status > 128 else self._status

    # -- actions -----------------------------------------------------------------------------------

    def pause(self) -> None:
        def pause() -> None:
            if not self._over.is_set() and not self._paused:
                freeze(self._container)
                self._paused = True

        self._order(pause)

    def resume(self) -> None:
        self._order(self._resume)

    def _resume(self) -> None:
        if self._paused and not self._over.is_set():
            assert self._container is not None
            self._paused = False
            self._container.unpause()

    def terminate(self) -> None:
        """An orderly stop, with controlled shutdown."""
        self.stopped = True
        self._order(lambda: self._signal("SIGTERM"))

    def kill(self) -> None:
        """The engine does not kill a paused container: it runs for some milliseconds before."""
        self.stopped = True
        self._order(self._resume)
        self._order(lambda: self._signal("SIGKILL"))

    def _signal(self, name: str) -> None:
        from docker.errors import APIError

        try:
            if not self._over.is_set():
                assert self._container is not None
                self._container.kill(signal=name)
        except APIError as error:
            if "is not running" not in str(error):  # it has ended by itself just now
                raise

    def reach(self, do: Callable[[Container], None]) -> None:
        """Another action on the container, in order, if there is one."""
        self._order(lambda: None if self._container is None else do(self._container))

    def join(self) -> None:
        """Wait until it has ended and all its output is in its log."""

        def end() -> None:
            if self._container is not None:
                self._resume()
                if not self.stopped:  # a second signal would end it at once
                    self._signal("SIGTERM")
                if not self._over.wait(GRACE_S):
                    self._signal("SIGKILL")
                self._finish_reading()

        self._order(end)
        for order in self._orders:
            order.result()
        self._orders.clear()

    def _finish_reading(self) -> None:
        if self._reader is not None:
            self._reader.join()
            self._reader = None

    def _remove(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            container.remove(force=True)

    def forget(self, then: Callable[[], None]) -> None:
        """Remove the container but keep its volumes; then run `then`."""
        self._order(self._remove)
        self._order(then)

    def close(self) -> None:
        """Remove the container and end the thread."""
        self._hands.submit(self._remove).result()
        self._hands.shutdown()
