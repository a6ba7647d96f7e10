"""Brokers as processes of this machine: loopback ports, a folder each, and a JVM with ZooKeeper.

`Deployment` is what a `ProcessWorld` needs from a place; `container_site` has other places.
"""

from __future__ import annotations

import resource
import shutil
from pathlib import Path
from typing import Protocol

from emulator.kafka.profiles.base import profiles
from emulator.scenario.actions.disk import DiskFault
from emulator.scenario.actions.life import Crash, Start
from emulator.scenario.errors import UserError
from emulator.scenario.schema import Scenario
from emulator.worlds.live import embedded_server
from emulator.worlds.processes.hollow_brokers import HollowBroker, HollowProcess
from emulator.worlds.processes.kafka_process import KafkaProcess
from emulator.worlds.processes.local_brokers import LocalBroker
from emulator.worlds.processes.small_disk import SmallDisk
from emulator.worlds.processes.wall_clock import set_wall_clock
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.release import find_release
from emulator.worlds.storage.sync_journal import lose_unsynced
from zk.real.server import HOST, Address, EmbeddedServer, reserve
from zk.real.server_ensemble import act_on
from zk.real.txnlog import Entry, read_log


class BrokerProcess(Protocol):
    """A broker in a process of any place, alone or with others."""

    look_us: int
    """How often it is looked at whether it has ended by itself."""

    @property
    def started(self) -> bool: ...

    @property
    def runs(self) -> bool: ...

    @property
    def is_dead(self) -> bool: ...

    def launch(self, words: list[str]) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def exit_code(self, timeout_s: float) -> int | None:
        """The exit code of its last process (negative: the signal that ended it); None while it
        runs."""
        ...

    def join(self) -> None: ...


class Deployment(Protocol):
    """A place for brokers. Addresses are known from the beginning; nothing listens before
    `start`."""

    @property
    def here(self) -> str:
        """The address at which brokers reach this process, and where its proxies listen."""
        ...

    @property
    def zookeeper(self) -> Address:
        """ZooKeeper's address for this process."""
        ...

    def start(self) -> None:
        """Start everything except brokers. Raises ServerError."""
        ...

    def process(self, broker: int) -> BrokerProcess:
        """A broker without a process."""
        ...

    def words(self, broker: int) -> list[str]:
        """The arguments for a broker's listener, files and trace."""
        ...

    def advertised_address(self, broker: int) -> tuple[str, int]:
        """The address that a broker advertises."""
        ...

    def address_of(self, broker: int) -> tuple[str, int]:
        """The broker's address for this process."""
        ...

    def lose(self, broker: int, what: str) -> None:
        """The machine of a broker that was killed crashes: its `disk` is gone, or what it had not
        synced (`unflushed`)."""
        ...

    def act_on(self, server: str, what: str) -> None:
        """`pause`, `resume`, `stop` or `launch` a ZooKeeper server, or all."""
        ...

    def plug(self, broker: int, /, *, connected: bool) -> bool:
        """Disconnect a broker from the network, or reconnect it; False if that is not supported
        here: its links are then cut one by one."""
        ...

    def limit_space(self, broker: int, free_bytes: int | None, /) -> None:
        """Take all space on its disk but this, or (None) give it back."""
        ...

    def limit_descriptors(self, broker: int, /, *, limited: bool) -> None:
        """Forbid its process new descriptors, or allow as many as the machine does."""
        ...

    def set_clock(self, broker: int, offset_ms: int, /) -> None:
        """Set the wall clock of its processes so far ahead, or (negative) behind."""
        ...

    def gather(self) -> list[Entry]:
        """After the brokers' end: move traces to the run's folder; returns ZooKeeper's log."""
        ...

    def close(self) -> None:
        """Remove everything."""
        ...


class LocalDeployment:
    """This machine, for one run."""

    here = HOST

    def __init__(self, scenario: Scenario, data_dir: Path, folder: Path) -> None:
        """`folder` gets traces, logs, and the brokers' disks."""
        self._folder = folder
        self.server: EmbeddedServer = embedded_server(scenario, data_dir)
        self.hollow = HollowProcess(folder)
        self._hollow = {b for b, host in scenario.hosts.items() if host.kind == "hollow"}
        # Ports are reserved for brokers that are not always running: otherwise another connection
        # on this machine could get one of them, and a restart would find it in use.
        kafka = {b: host.version for b, host in scenario.hosts.items() if host.kind == "kafka"}
        ours = [boot.broker for boot in scenario.boots if boot.broker not in kafka]
        self._reserved = {broker: reserve(0) for broker in ours}
        self._ports = {broker: int(one.getsockname()[1]) for broker, one in self._reserved.items()}
        # Those of upgrades too: a run does not stop for a download.
        upgrades = [
            profiles()[step.action.profile].release
            for step in scenario.steps
            if isinstance(step.action, Start)
            and step.action.broker in kafka
            and step.action.profile
        ]
        versions = {*kafka.values(), *upgrades}
        releases = {version: find_release(version, None) for version in sorted(versions)}
        self._kafka = {
            broker: RealBroker(
                broker, folder / f"broker-{broker}", releases[version], is_large=bool(self._hollow)
            )
            for broker, version in kafka.items()
        }
        self._ports |= {broker: real.port for broker, real in self._kafka.items()}
        # A disk that is to be full must not be everybody's.
        steps = [step.action for step in scenario.steps]
        self._filled = {action.broker for action in steps if isinstance(action, DiskFault)}
        self._crashing = {
            action.broker
            for action in steps
            if isinstance(action, Crash) and action.lose == "unflushed"
        }
        self._disks: dict[int, SmallDisk] = {}
        self._processes: dict[int, LocalBroker] = {}

    def start(self) -> None:
        self.server.start()
        self._disks = {broker: SmallDisk(self._data_of(broker)) for broker in self._filled}

    @property
    def zookeeper(self) -> Address:
        return self.server.address

    def process(self, broker: int) -> LocalBroker | KafkaProcess | HollowBroker:
        if broker in self._hollow:
            return self.hollow.broker(broker)
        if broker in self._kafka:
            return KafkaProcess(self._kafka[broker])
        self.set_clock(broker, 0)
        process = LocalBroker(broker, [], self._folder / f"broker-{broker}.log")
        self._processes[broker] = process
        return process

    def words(self, broker: int) -> list[str]:
        words = ["--listen", f"{HOST}:{self._ports[broker]}"]
        if broker in self._hollow:
            return words  # its logs are in memory, and it writes no trace
        words += ["--data", str(self._data_of(broker)), "--trace", str(self._folder)]
        words += ["--clock", str(self._clock_of(broker))]
        if broker in self._crashing:
            words += ["--synced", str(self._journal_of(broker))]
        return words

    def advertised_address(self, broker: int) -> tuple[str, int]:
        return HOST, self._ports[broker]

    def address_of(self, broker: int) -> tuple[str, int]:
        return self.advertised_address(broker)

    def lose(self, broker: int, what: str) -> None:
        if what == "unflushed":
            lose_unsynced(self._data_of(broker), self._journal_of(broker))
        elif broker in self._kafka:
            KafkaProcess(self._kafka[broker]).erase()
        elif broker in self._disks:
            self._disks[broker].erase()
        else:
            shutil.rmtree(self._data_of(broker))

    def _data_of(self, broker: int) -> Path:
        return self._folder / f"data-{broker}"

    def _clock_of(self, broker: int) -> Path:
        return self._folder / f"clock-{broker}"

    def _journal_of(self, broker: int) -> Path:
        return self._folder / f"synced-{broker}.ndjson"

    def act_on(self, server: str, what: str) -> None:
        act_on(self.server, what)

    def plug(self, broker: int, /, *, connected: bool) -> bool:
        return False

    def limit_space(self, broker: int, free_bytes: int | None, /) -> None:
        disk = self._disks.get(broker)
        if disk is None:
            raise UserError(f"disk: broker {broker} has no disk of its own in this run")
        if free_bytes is None:
            disk.free()
        else:
            disk.fill(free_bytes)

    def limit_descriptors(self, broker: int, /, *, limited: bool) -> None:
        process = self._processes[broker]
        if process.is_dead:
            return  # the next one begins without a limit
        hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
        open_now = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        soft = open_now if limited else hard
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))

    def set_clock(self, broker: int, offset_ms: int, /) -> None:
        set_wall_clock(self._clock_of(broker), offset_ms)

    def gather(self) -> list[Entry]:
        self.server.close()
        return list(read_log(self.server.txn_log_dir))

    def close(self) -> None:
        self.hollow.close()
        self.server.close()
        for real in self._kafka.values():
            real.close()
        for disk in self._disks.values():
            disk.close()
        for reservation in self._reserved.values():
            reservation.close()
