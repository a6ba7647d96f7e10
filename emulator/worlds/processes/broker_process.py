"""One broker as an operating-system process: the kernel, a real ZooKeeper, Kafka's protocol.

The third arrangement of the same objects: `kafka.node.Broker` on the live kernel, with sockets
instead of the network in memory, and files instead of the disk if a folder is given. Ends with the
broker: orderly on SIGTERM or SIGINT (controlled shutdown), at once on SIGKILL. Owns the process's
signals, log lines and its part of a trace. Knows no other broker.
"""

from __future__ import annotations

import signal
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from uuid import uuid4

import msgspec

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.broker.zookeeper import client_version_of
from emulator.kafka.controller.controller import NO_CONTROLLER
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.node import Broker
from emulator.kafka.profiles.base import Profile
from emulator.kernel.rng import Chance
from emulator.kernel.scheduler import Process
from emulator.scenario.errors import UserError
from emulator.trace import events
from emulator.trace.reader import SCHEMA_VERSION, Header
from emulator.trace.values import EpochRun
from emulator.worlds.live_clock import LiveClock, LiveKernel
from emulator.worlds.network.cause_links import CausalityLog
from emulator.worlds.network.memory import Listener
from emulator.worlds.network.sockets import ConnectionLimits, Sockets
from emulator.worlds.network.tcp import TcpNetwork
from emulator.worlds.processes.controller_check import ControllerCheck
from emulator.worlds.processes.linked_sessions import LinkedService
from emulator.worlds.processes.process_trace import ProcessTrace
from emulator.worlds.processes.status_page import Counts, StatusPage
from emulator.worlds.processes.wall_clock import WallClock
from emulator.worlds.storage.files import OperatingSystemFiles
from emulator.worlds.storage.stored_logs import stored_disk
from emulator.worlds.storage.sync_journal import JournalledFiles
from zk.client.client_times import ClientTimes
from zk.client.kafka_zk_client import KafkaZkClient
from zk.ops import SessionState
from zk.real.kazoo_service import KazooService
from zk.real.server import ServerError, ensure_chroot, parse_address, wait_until_ready

SLICE_US = 1_000_000
SWITCH_S = 0.0005
"""How long a thread keeps the interpreter when another wants it. A request goes from the sockets'
thread to the kernel's and back: with Python's 5 ms each long frame of a stranger costs it that."""

SHOWN = 1000
"""Characters of a line."""

OLDEST = (1, 0)
"""Older ones write record formats that are not spoken."""


def check_profile(profile: Profile) -> None:
    """UserError for a Kafka version whose protocol is not supported here."""
    if tuple(int(part) for part in profile.release.split(".")[:2]) < OLDEST:
        raise UserError(
            f"--profile {profile.name}: brokers as processes speak the protocol of 1.0 and later"
        )


class BrokerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a broker's process. It binds `listen` and registers `advertised`. `through`
    are proxies, by the advertised address that they stand for. `began_ns` is time zero, on the
    machine's monotonic clock. `synced`: a journal for a crash of its machine. `clock`: a file with
    the offset of its wall clock."""

    broker: int
    zookeeper: str
    listen: tuple[str, int]
    advertised: tuple[str, int]
    profile: Profile
    settings: dict[str, str]
    data: Path | None = None
    trace: Path | None = None
    began_ns: int | None = None
    synced: Path | None = None
    clock: Path | None = None
    page: tuple[str, int] | None = None
    through: dict[tuple[str, int], tuple[str, int]] = {}


class ProcessParts:
    """What the brokers of one operating-system process share: time, sockets and the trace. `log`
    receives what keeps connections out, on any thread."""

    def __init__(self, options: BrokerOptions, log: Callable[[str], None]) -> None:
        header = Header(
            SCHEMA_VERSION, "", 0, options.profile.name, options.zookeeper, dict(options.settings)
        )
        self._trace = ProcessTrace(options.trace, header)
        sink = self._trace.sink
        sink.listen(self._pass_on)
        self.clock = LiveClock()
        self.clock.begin(options.began_ns)
        self.kernel = LiveKernel(sink, self.clock)
        self.links = CausalityLog(self._trace.links_path, lambda: sink.next_seq)
        config = KafkaConfig.of(options.profile.values, options.settings)
        limits = msgspec.convert(config, ConnectionLimits, from_attributes=True)
        self.sockets = Sockets(limits, log)
        # Events without a recipient are written when there is time.
        self.clock.on_idle = lambda _: self.flush()
        self._listeners: dict[int, list[Callable[[events.AnyEvent], object]]] = {}

    def listen(self, broker: int, listener: Callable[[events.AnyEvent], object]) -> None:
        """To a broker's events."""
        self._listeners.setdefault(broker, []).append(listener)

    def forget(self, broker: int) -> None:
        """Its process is over: nobody listens to it."""
        self._listeners.pop(broker, None)

    def _pass_on(self, event: events.AnyEvent) -> None:
        for listener in self._listeners.get(event.broker, ()):
            listener(event)

    def flush(self) -> None:
        """Messages to others must be in the trace before they are sent: otherwise a SIGKILL after
        the message would leave an effect without its cause. Links first: events refer to them by
        number, and the next process of this broker continues the numbers of the file."""
        self.links.flush()
        self._trace.flush()

    def close(self) -> None:
        self.sockets.close()
        self.flush()
        self._trace.close()
        self.links.close()
        self.kernel.close()


class StandaloneBroker:
    """One run of one broker."""

    def __init__(
        self, options: BrokerOptions, parts: ProcessParts | None = None, disk: Disk | None = None
    ) -> None:
        """`parts`: of a process that has other brokers too, and a `disk` in its memory."""
        self.options = options
        self.failure = ""
        self._session: SessionState | None = None
        self._has_own_parts = parts is None
        self.parts = parts = parts or ProcessParts(options, self.log)
        self.clock, self.kernel = parts.clock, parts.kernel
        self.config = KafkaConfig.of(options.profile.values, options.settings)
        self.network = TcpNetwork(
            self.kernel,
            self.clock,
            options.profile,
            parts.links,
            self.log,
            options.through,
            parts.sockets,
        )
        self.network.load_schemas()
        self.network.before_sending = parts.flush
        address = parse_address(options.zookeeper)
        self.service = KazooService(address, ClientTimes(), self.kernel.soon)
        parts.listen(options.broker, self._print_event)
        self._disk = disk or Disk(self.config.log_directories)
        if options.data is not None:
            guards = options.profile.guards
            files = (
                OperatingSystemFiles() if not options.synced else JournalledFiles(options.synced)
            )
            self._disk = stored_disk(files, options.data, self.config, guards, self.log)
        self._wall_clock = WallClock(options.clock)
        process = self.kernel.process(f"broker-{options.broker}")
        process.on_death = self._died
        host, port = options.advertised
        self.node = Broker(
            BrokerContext(options.broker, self.kernel, process, self.config, options.profile),
            LinkedService(self.service, parts.links, self.kernel),
            self.network,
            self._disk,
            host=host,
            port=port,
            wall_ms=self._wall_clock.now_ms,
            # For assignments of topics that a user creates by hand: such a run is never repeated.
            draw=Chance(time.time_ns()).stream("assignment", "admin").below,
            # CoreUtils.scala@2.6.3 generateUuidAsBase64.
            new_cluster_id=urlsafe_b64encode(uuid4().bytes).decode().rstrip("="),
        )
        check = ControllerCheck(
            self.kernel, process, self._zk_client, lambda: self._active_controller
        )
        parts.listen(options.broker, check.on_event)
        self.network.check_control_request = check
        self._page: StatusPage | None = None
        option, where = "--listen", options.listen
        try:
            listener = Listener(process, self.config.num_network_threads, self.node.receive)
            self.network.listen(*where, port, listener)
            if options.page is not None:
                option, where, counts = "--page", options.page, Counts()
                parts.listen(options.broker, counts)
                self.network.on_invalid_request = counts.count_invalid_request
                self._page = StatusPage(where, self.node, counts, self.clock.put)
                self.node.page_port = self._page.port
        except OSError as error:
            self.close()
            raise UserError(f"{option} {where[0]}:{where[1]}: {error.strerror}") from None
        self.log(self._addresses())

    def _zk_client(self) -> KafkaZkClient | None:
        """The client of the broker's current session."""
        client, profile = self.node.zk, self.options.profile
        if client is None:
            return None
        return KafkaZkClient(client, lambda: 0, client_version_of(profile))

    @property
    def _active_controller(self) -> int:
        """The controller as this broker's KafkaController knows it."""
        controller = self.node.controller
        return NO_CONTROLLER if controller is None else controller.active_controller_id

    # -- life --------------------------------------------------------------------------------------

    def run(self) -> bool:
        """Run from start to end; returns whether the end was orderly. ServerError if there is no
        ZooKeeper."""
        address = parse_address(self.options.zookeeper)
        sys.setswitchinterval(SWITCH_S)
        with _Signals(lambda: self.clock.put(self.terminate)):
            try:
                if self.options.began_ns is None:  # otherwise who began it all has looked
                    wait_until_ready(address)
                    ensure_chroot(address)
                self.kernel.now = self.clock.now_us()
                self.start()
                while not self.is_dead:
                    self.kernel.run(self.kernel.now + SLICE_US)
            except Exception as error:
                # Readers of the trace must see that the broker has ended; only the broker knows
                # why.
                if self.node.process_state != "dead":
                    self.node.halt(f"{type(error).__name__}: {error}")
                raise
            finally:
                self.close()
        if self.failure:
            raise ServerError(self.failure)
        return self.node.exited

    def start(self) -> None:
        """Begin to boot; the kernel's owner runs it."""
        self.node.start()
        if self.options.data is not None:
            self._trace_loaded_logs()

    def _trace_loaded_logs(self) -> None:
        """The last process may have been killed between a write and its event."""
        for directory in self._disk.directories:
            for partition, log in sorted(directory.logs.items()):
                start, epochs = log.log_start_offset, list[EpochRun]()
                for batch in log.batches:
                    is_next = not epochs or epochs[-1].leader_epoch != batch.leader_epoch
                    if is_next and batch.next_offset > start:
                        base = max(start, batch.base_offset)
                        epochs.append(EpochRun(batch.leader_epoch, base))
                end = log.log_end_offset
                self.node.context.emit(events.LogLoaded, partition, start, end, tuple(epochs))

    @property
    def is_dead(self) -> bool:
        return self.node.context.process.state == "dead"

    def _addresses(self) -> str:
        """Its ports and their purposes."""
        options = self.options
        text = f"listens at {options.listen[0]}:{options.listen[1]}"
        if options.advertised != options.listen:
            text += f", advertised as {options.advertised[0]}:{options.advertised[1]}"
        if options.page is not None:
            text += f"; page at http://{options.page[0]}:{options.page[1]}"
        return f"{text}; ZooKeeper at {options.zookeeper}"

    def terminate(self) -> None:
        """A signal: stop in an orderly way; a second one ends the process at once."""
        if self.node.shutting_down:
            self.node.halt("second signal, the shutdown was not complete")
            return
        self.node.terminate()
        self._log_shutdown_wait()

    def _log_shutdown_wait(self) -> None:
        if self.node.shutting_down and self._session is SessionState.DISCONNECTED:
            self.log(
                f"shutdown waits for ZooKeeper at {self.options.zookeeper}, which does not answer:"
                " it names the controller that is to move this broker's leaderships; a second"
                " signal ends the broker at once"
            )

    def _died(self, process: Process) -> None:
        self.network.process_died(process)
        self.kernel.stop()

    def close(self) -> None:
        """Nothing of it stays open."""
        self.network.close()
        # A halt ends the process at once: it does not wait for responses of ZooKeeper or clients of
        # the page, and their threads end with it.
        if self.node.exited:
            if self._page is not None:
                self._page.close()
            self.service.close()
        self.parts.flush()
        self.parts.forget(self.options.broker)
        for directory in self._disk.directories:
            directory.close()
        self._wall_clock.close()
        if self._has_own_parts:
            self.parts.close()

    # -- what it says ------------------------------------------------------------------------------

    def log(self, text: str) -> None:
        """Any thread: print one line on standard error, with the time; some text comes from
        clients."""
        shown = text[:SHOWN]
        if not shown.isprintable():
            shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in shown)
        now = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
        # In one piece: another thread may write a line at the same moment.
        sys.stderr.write(f"{now} broker {self.options.broker}: {shown}\n")
        sys.stderr.flush()

    def _print_event(self, event: events.AnyEvent) -> None:
        """Print the few events that a user of the process wants to see."""
        match event:
            case events.BrokerRegistered(broker_epoch=epoch):
                self.log(f"registered, broker epoch {epoch}")
            case events.BrokerStarted():
                host, port = self.options.advertised
                self.log(f"started at {host}:{port}")
            case events.ControllerElected(controller_epoch=epoch):
                self.log(f"is controller, epoch {epoch}")
            case events.ControllerResigned(controller_epoch=epoch):
                self.log(f"is no longer controller, epoch {epoch}")
            case events.BrokerHalted(reason=reason):
                self.log(f"halted: {reason}")
            case events.BrokerExited():
                self.log("has ended")
            case events.ZkSessionState(state=state):
                self._session = SessionState(state)
                self._log_shutdown_wait()
            case events.ThreadFailed(what=what, error=error):
                self.log(f"{what}: {error}")
                if what == "startup":
                    self.failure = f"broker {event.broker} cannot start: {error}"
                    if "NODE_EXISTS for /brokers/ids/" in error:
                        # More than Kafka prints: users ask what this means.
                        self.failure += (
                            ": another broker has this id, or the session of its last process has"
                            " not ended yet"
                        )
            case _:
                pass


class _Signals:
    """While this context is active, SIGTERM and SIGINT end the broker in an orderly way."""

    def __init__(self, terminate: Callable[[], None]) -> None:
        self._terminate = terminate

    def __enter__(self) -> None:
        def handle(_number: int, _frame: FrameType | None) -> None:
            self._terminate()

        numbers = (signal.SIGTERM, signal.SIGINT)
        self._before = {number: signal.signal(number, handle) for number in numbers}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
