"""ZooKeeper's control by actions (scenario.actions.base.ZooKeeperControl), and the brokers' links
to it: the model on our kernel, or a real server with a tap in front of each broker."""

from __future__ import annotations

from collections.abc import Callable

from emulator.kernel.scheduler import Process
from emulator.scenario.actions.base import ZOOKEEPER
from emulator.scenario.capabilities import Capabilities, Unsupported
from zk.model.ensemble import Ensemble
from zk.real.tap import Tap
from zk.wire import Direction, Timer, When, labelled


class ModelledServer(Capabilities):
    """The actions that the model supports."""

    subject = "the modelled ZooKeeper"

    expire_session = forget_session = end_session = drop_connection = Capabilities.supported

    def pause(self, server: str) -> None:
        if server != ZOOKEEPER:
            raise Unsupported(ONE_SERVER)

    resume = stop = start = pause


class OwnServer(Capabilities):
    """A real server that the run has started."""

    subject = "a real ZooKeeper server"

    expire_session = drop_connection = Capabilities.supported
    pause = resume = stop = start = ModelledServer.pause

    def forget_session(self, broker: int) -> None:
        raise Unsupported("a real ZooKeeper server does not support this; use --target simulated")

    end_session = forget_session


class OwnEnsemble(OwnServer):
    """Servers that can be stopped one by one."""

    pause = resume = stop = start = Capabilities.supported


class ForeignServer(OwnServer):
    """A server that existed before the run."""

    def pause(self, server: str) -> None:
        if server != ZOOKEEPER:
            raise Unsupported(ONE_SERVER)
        raise Unsupported("the ZooKeeper server is not ours (--zookeeper embedded or simulated)")

    resume = stop = start = pause


ONE_SERVER = "there is one ZooKeeper server: --target containers or compose has several"


class ModelledZooKeeper:
    """The ensemble on our kernel; its process starts and loads in drawn times."""

    def __init__(
        self, ensemble: Ensemble, process: Process, latency: Callable[[str, str], int]
    ) -> None:
        self._ensemble, self._process, self._latency = ensemble, process, latency
        self._booting: Timer | None = None

    @property
    def _is_present(self) -> bool:
        return self._ensemble.is_up or self._booting is not None

    def pause(self, server: str) -> None:
        if self._is_present:
            self._process.pause()

    def resume(self, server: str) -> None:
        self._process.resume()

    def stop(self, server: str) -> None:
        """Also ends a paused process; the next one runs."""
        if self._booting is not None:
            # It was starting, and never becomes ready.
            self._booting.cancel()
            self._booting = None
        self._ensemble.stop()
        self._process.resume()

    def start(self, server: str) -> None:
        if not self._is_present:
            self._boot("zk_start", self._listen)

    def _boot(self, purpose: str, then: Callable[[], None]) -> None:
        # The server's process: its start does not progress while it is paused.
        lane = self._process.lane("main")
        self._booting = lane.call_later(self._latency(purpose, "zookeeper"), then)

    @labelled("listen")
    def _listen(self) -> None:
        self._ensemble.listen()
        self._boot("zk_listen", self._load)

    @labelled("load")
    def _load(self) -> None:
        self._ensemble.load()
        self._boot("zk_load", self._serve)

    @labelled("serve")
    def _serve(self) -> None:
        self._booting = None
        self._ensemble.start()

    # -- sessions and links -----------------------------------------------------------------------

    def expire_session(self, broker: int) -> None:
        self._ensemble.expire(f"broker-{broker}")

    def forget_session(self, broker: int) -> None:
        self._ensemble.forget(f"broker-{broker}")

    def end_session(self, broker: int) -> None:
        self._ensemble.end_forgotten(f"broker-{broker}")

    def drop_connection(self, broker: int, when: When, op: str | None, count: int) -> None:
        self._ensemble.drop_connection(f"broker-{broker}", when, op, count)

    def cut(self, broker: int, ways: tuple[Direction, ...]) -> None:
        self._ensemble.cut(f"broker-{broker}", *ways)

    def heal(self, broker: int) -> None:
        self._ensemble.heal(f"broker-{broker}")

    def delay(self, broker: int, delay_ms: int) -> None:
        self._ensemble.delay(f"broker-{broker}", delay_ms * 1000)

    def disturb(self, broker: int, drawn_us: Callable[[Direction], int]) -> None:
        self._ensemble.disturb(f"broker-{broker}", drawn_us)


class TappedZooKeeper:
    """Real servers, which each broker reaches through its own tap."""

    def __init__(
        self,
        tap_of: Callable[[int], Tap],
        act_on_server: Callable[[str, str], None],
        expire: Callable[[int], None],
    ) -> None:
        """`act_on_server`: (server, action), see `zk.real.server_ensemble.act_on`; `expire` has the
        server end the session of a broker."""
        self._tap_of, self._act_on_server, self._expire = tap_of, act_on_server, expire

    def pause(self, server: str) -> None:
        self._act_on_server(server, "pause")

    def resume(self, server: str) -> None:
        self._act_on_server(server, "resume")

    def stop(self, server: str) -> None:
        self._act_on_server(server, "stop")

    def start(self, server: str) -> None:
        self._act_on_server(server, "launch")

    def expire_session(self, broker: int) -> None:
        self._expire(broker)

    def forget_session(self, broker: int) -> None:
        raise AssertionError("capabilities should have refused this on a real server")

    def end_session(self, broker: int) -> None:
        raise AssertionError("a real server forgets no session by halves: Capabilities say so")

    def drop_connection(self, broker: int, when: When, op: str | None, count: int) -> None:
        self._tap_of(broker).drop_connection(when, op, count)

    def cut(self, broker: int, ways: tuple[Direction, ...]) -> None:
        self._tap_of(broker).cut(*ways)

    def heal(self, broker: int) -> None:
        self._tap_of(broker).heal()

    def delay(self, broker: int, delay_ms: int) -> None:
        self._tap_of(broker).delay(delay_ms * 1000)

    def disturb(self, broker: int, drawn_us: Callable[[Direction], int]) -> None:
        self._tap_of(broker).disturb(drawn_us)
