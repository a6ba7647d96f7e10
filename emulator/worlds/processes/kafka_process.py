"""Real Kafka as a broker's process beside emulated ones (local_site.BrokerProcess).

Its start arguments are its version and lines of `server.properties`. Owns signals and what its log
says about the start; `real_kafka.broker` owns its folder and the JVM.
"""

from __future__ import annotations

import shutil
import signal

from emulator.worlds.processes.local_brokers import GRACE_S, LOOK_US, BrokerEnded, stop
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.release import find_release


class KafkaProcess:
    """One broker with its current JVM."""

    look_us = LOOK_US

    def __init__(self, real: RealBroker) -> None:
        self._real = real
        self._has_started = self._was_stopped = False

    @property
    def pid(self) -> int:
        return self._real.pid

    def launch(self, words: list[str]) -> None:
        """`words`: the version, and settings, `KEY=VALUE`; `advertised.listeners` is the address
        for others."""
        self.join()
        self._has_started = self._was_stopped = False
        version, *pairs = words
        self._real.install(find_release(version, None))
        settings = dict(word.split("=", 1) for word in pairs)
        host, _, port = settings.pop("advertised.listeners").rpartition(":")
        self._real.configure(settings, advertised=(host, int(port)))
        self._real.start()

    @property
    def started(self) -> bool:
        """Whether it has logged that it is up. BrokerEnded if it never will."""
        was_dead = self.is_dead  # before the log is read: what it logged last is in there then
        self._has_started = self._has_started or self._real.has_started()
        if was_dead and not self._has_started:
            raise BrokerEnded(f"broker {self._real.id} has ended: {self._real.last_error()}")
        return self._has_started

    @property
    def runs(self) -> bool:
        return not self.is_dead and not self._was_stopped

    @property
    def is_dead(self) -> bool:
        return not self._real.runs

    def pause(self) -> None:
        self._real.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._real.signal(signal.SIGCONT)

    def terminate(self) -> None:
        self._was_stopped = True
        self._real.signal(signal.SIGTERM)

    def kill(self) -> None:
        self._was_stopped = True
        self._real.signal(signal.SIGKILL)

    def exit_code(self, timeout_s: float) -> int | None:
        return self._real.exit_code(timeout_s)

    def join(self) -> None:
        """Wait until it has ended."""
        stop(self, lambda: GRACE_S)

    def erase(self) -> None:
        """Its disk is lost."""
        data = self._real.folder / "data"
        shutil.rmtree(data)
        data.mkdir()
