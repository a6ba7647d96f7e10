"""A broker host that is real Kafka: signals, and proxies on its links."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Collection, Mapping

from emulator.trace.values import ProcessState
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.clients import Administrator, client_settings, wall_us
from emulator.worlds.real_kafka.notes import ProcessEvent, RunNotes


class RealHost:
    """One broker and its process events, as notes. `look` checks whether its JVM has ended: nothing
    reports that."""

    def __init__(self, real: RealBroker, notes: RunNotes) -> None:
        self.broker, self.real, self._notes = real.id, real, notes
        self._state: ProcessState = "dead"
        self._before_pause: ProcessState = "dead"
        self._leaves = False
        self._successor: Callable[[], object] | None = None

    def boot(self, not_before_us: Mapping[str, int] | None = None) -> None:
        assert not_before_us is None, "time is the machine's: Capabilities say so"
        self._report("starting", wall_us())
        self.real.start()

    @property
    def started(self) -> bool:
        return self.real.has_started()

    @property
    def is_running(self) -> bool:
        return self.real.runs and not self._leaves

    def knows(self, brokers: Collection[int]) -> bool:
        """What it reports to clients."""
        live = Administrator(client_settings([self.real.address], self.real.release)).live()
        return live == tuple(sorted(brokers))

    def when_dead(self, then: Callable[[], object]) -> None:
        self._successor = then
        self.look()

    def look(self) -> None:
        """Check whether its process has ended; if so, call what waits for that."""
        if self.real.runs:
            return
        if self._state != "dead":
            self._report("dead", wall_us(), orderly=self._leaves, noticed=True)
            self._leaves = False
        then, self._successor = self._successor, None
        if then is not None:
            then()

    def end(self) -> None:
        self.real.close()

    def join(self) -> None:
        """Nothing to wait for: `end` kills."""

    def _report(
        self, state: ProcessState, at_us: int, *, orderly: bool = False, noticed: bool = False
    ) -> None:
        self._state = state
        self._notes.processes.append(ProcessEvent(at_us, self.broker, state, orderly, noticed))

    # -- actions -----------------------------------------------------------------------------------

    @property
    def _now_us(self) -> int:
        """The time of the current action, which causes the process's event."""
        return self._notes.actions[-1].at_us

    def pause(self) -> None:
        self.real.signal(signal.SIGSTOP)
        if self._state not in ("dead", "paused"):
            # Its log says when it is up, but is read only when asked for.
            is_up = self._state == "starting" and self.real.has_started()
            self._before_pause = "up" if is_up else self._state
            self._report("paused", self._now_us)

    def resume(self) -> None:
        self.real.signal(signal.SIGCONT)
        if self._state == "paused":
            self._report(self._before_pause, self._now_us)

    def kill(self) -> None:
        self.real.kill()  # returns when it is gone
        if self._state != "dead":
            self._leaves = False
            self._report("dead", self._now_us)

    def terminate(self) -> None:
        self._leaves = True
        self.real.signal(signal.SIGTERM)
        if self._state == "paused":
            self._before_pause = "stopping"  # the signal waits until it runs on
        elif self._state != "dead":
            self._report("stopping", self._now_us)

    def lose_from_disk(self, what: str) -> None:
        if what == "disk":
            data = self.real.folder / "data"
            shutil.rmtree(data, ignore_errors=True)
            data.mkdir()

    def install(self, profile: str, propagation: str) -> None:
        raise AssertionError("one version of Kafka is recorded: Capabilities say so")

    def fail_log_dir(self, *_: object) -> None:
        raise AssertionError("its disk is the machine's: Capabilities say so")

    repair_log_dir = slow_disk = fail_disk_calls = limit_space = shorten_writes = fail_log_dir
    damage_log = mend_disk = fail_log_dir

    use_up_descriptors = free_descriptors = set_clock = fail_log_dir

    def fail_authentication(self) -> None:
        raise AssertionError("its client is its own: Capabilities say so")
