"""Where brokers run as processes of this machine: ports of loopback, a folder each, a JVM with
ZooKeeper beside them.

What a `ProcessWorld` needs to know of a place (`Deployment`); `container_site` has others.
"""

from __future__ import annotations

import resource
import shutil
from pathlib import Path
from typing import Protocol

from emulator.scenario.actions.resources import FillDisk
from emulator.scenario.errors import UserError
from emulator.scenario.schema import Scenario
from emulator.worlds.live import embedded_server
from emulator.worlds.processes.kafka_process import KafkaProcess
from emulator.worlds.processes.local_brokers import LocalBroker
from emulator.worlds.processes.small_disk import SmallDisk
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.release import find_release
from zk.real.server import HOST, Address, EmbeddedServer, reserve
from zk.real.server_ensemble import act_on
from zk.real.txnlog import Entry, read_log


class BrokerProcess(Protocol):
    """A broker that is a process, wherever it runs."""

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
        """Of its last process (negative: the signal that ended it); None while it runs."""
        ...

    def join(self) -> None: ...


class Deployment(Protocol):
    """A place for brokers. Addresses are known from the start; nobody answers there before
    `start`."""

    @property
    def here(self) -> str:
        """Where brokers reach this process, and where its proxies listen."""
        ...

    @property
    def zookeeper(self) -> Address:
        """As this process reaches it."""
        ...

    def start(self) -> None:
        """Everything but brokers. Raises ServerError."""
        ...

    def process(self, broker: int) -> BrokerProcess:
        """A broker that has no process yet."""
        ...

    def words(self, broker: int) -> list[str]:
        """Where a broker listens, and keeps its files and its trace."""
        ...

    def advertised_address(self, broker: int) -> tuple[str, int]:
        """Where a broker says that it is."""
        ...

    def address_of(self, broker: int) -> tuple[str, int]:
        """Where this process reaches it."""
        ...

    def erase(self, broker: int) -> None:
        """The disk of a broker that was killed is gone."""
        ...

    def act_on(self, server: str, what: str) -> None:
        """`pause`, `resume`, `stop` or `launch` a ZooKeeper server, or all."""
        ...

    def plug(self, broker: int, /, *, connected: bool) -> bool:
        """Take the network away from a broker, or give it back; False: that cannot be done here,
        its links are cut one by one."""
        ...

    def fill_disk(self, broker: int, /, *, full: bool) -> None:
        """Take all space on its disk, or give it back."""
        ...

    def limit_descriptors(self, broker: int, /, *, limited: bool) -> None:
        """Let its process open nothing more, or as much as the machine allows."""
        ...

    def gather(self) -> list[Entry]:
        """When brokers have ended: traces are in the run's folder, and this is ZooKeeper's log."""
        ...

    def close(self) -> None:
        """Nothing stays behind."""
        ...


class LocalDeployment:
    """This machine, for one run."""

    here = HOST

    def __init__(self, scenario: Scenario, data_dir: Path, folder: Path) -> None:
        """`folder` takes traces, logs, and the brokers' disks."""
        self._folder = folder
        self.server: EmbeddedServer = embedded_server(scenario, data_dir)
        # Ports are kept for brokers that are not always there: any connection that somebody on this
        # machine opens could be given one of them, and a restart would find it taken.
        kafka = {b: host.version for b, host in scenario.hosts.items() if host.kind == "kafka"}
        ours = [boot.broker for boot in scenario.boots if boot.broker not in kafka]
        self._reserved = {broker: reserve(0) for broker in ours}
        self._ports = {broker: int(one.getsockname()[1]) for broker, one in self._reserved.items()}
        releases = {version: find_release(version, None) for version in set(kafka.values())}
        self._kafka = {
            broker: RealBroker(broker, folder / f"broker-{broker}", releases[version])
            for broker, version in kafka.items()
        }
        self._ports |= {broker: real.port for broker, real in self._kafka.items()}
        # A disk that is to be full must not be everybody's.
        steps = (step.action for step in scenario.steps)
        self._filled = {action.broker for action in steps if isinstance(action, FillDisk)}
        self._disks: dict[int, SmallDisk] = {}
        self._processes: dict[int, LocalBroker] = {}

    def start(self) -> None:
        self.server.start()
        self._disks = {broker: SmallDisk(self._data_of(broker)) for broker in self._filled}

    @property
    def zookeeper(self) -> Address:
        return self.server.address

    def process(self, broker: int) -> LocalBroker | KafkaProcess:
        if broker in self._kafka:
            return KafkaProcess(self._kafka[broker])
        process = LocalBroker(broker, [], self._folder / f"broker-{broker}.log")
        self._processes[broker] = process
        return process

    def words(self, broker: int) -> list[str]:
        words = ["--listen", f"{HOST}:{self._ports[broker]}"]
        return [*words, "--data", str(self._data_of(broker)), "--trace", str(self._folder)]

    def advertised_address(self, broker: int) -> tuple[str, int]:
        return HOST, self._ports[broker]

    def address_of(self, broker: int) -> tuple[str, int]:
        return self.advertised_address(broker)

    def erase(self, broker: int) -> None:
        if broker in self._kafka:
            KafkaProcess(self._kafka[broker]).erase()
        elif broker in self._disks:
            self._disks[broker].erase()
        else:
            shutil.rmtree(self._data_of(broker))

    def _data_of(self, broker: int) -> Path:
        return self._folder / f"data-{broker}"

    def act_on(self, server: str, what: str) -> None:
        act_on(self.server, what)

    def plug(self, broker: int, /, *, connected: bool) -> bool:
        return False

    def fill_disk(self, broker: int, /, *, full: bool) -> None:
        disk = self._disks.get(broker)
        if disk is None:
            raise UserError(f"fill_disk: broker {broker} has no disk of its own in this run")
        if full:
            disk.fill()
        else:
            disk.free()

    def limit_descriptors(self, broker: int, /, *, limited: bool) -> None:
        process = self._processes[broker]
        if process.is_dead:
            return  # the next one begins without a limit
        hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
        open_now = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        soft = open_now if limited else hard
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))

    def gather(self) -> list[Entry]:
        self.server.close()
        return list(read_log(self.server.txn_log_dir))

    def close(self) -> None:
        self.server.close()
        for real in self._kafka.values():
            real.close()
        for disk in self._disks.values():
            disk.close()
        for reservation in self._reserved.values():
            reservation.close()
