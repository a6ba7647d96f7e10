"""One real broker: its folder, its settings, its logs, its process.

Owns the content of `server.properties` and `log4j.properties`, and the start and signals of the
JVM. The log files and their pattern are those of Kafka's distribution; the loggers of replication
are verbose (state.change.logger and kafka.controller at TRACE, kafka.cluster.Partition at DEBUG).
Does not know what uses it.
"""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from emulator.worlds.real_kafka.release import Release
from zk.real.child import Child
from zk.real.server import HOST, Address, find_java, reserve

# A recorded broker lives for a minute and does little. With only the first compiler, one collector
# thread and shared classes it starts in a few seconds, and several fit on a machine.
_JVM = ("-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
_SMALL, _LARGE = ("-Xmx256m", "-Xms256m", "-XX:TieredStopAtLevel=1"), ("-Xmx1g",)
"""The second is Kafka's own default."""
_LOG4J = """\
log4j.rootLogger=INFO, server
{appenders}
log4j.logger.kafka=INFO
log4j.logger.org.apache.kafka=INFO
log4j.logger.kafka.cluster.Partition={partition}
log4j.logger.kafka.controller={controller}, controller
log4j.additivity.kafka.controller=false
log4j.logger.state.change.logger={controller}, state-change
log4j.additivity.state.change.logger=false
log4j.logger.kafka.request.logger=WARN
"""
_APPENDER = """\
log4j.appender.{name}=org.apache.log4j.FileAppender
log4j.appender.{name}.File=${{kafka.logs.dir}}/{name}.log
log4j.appender.{name}.layout=org.apache.log4j.PatternLayout
log4j.appender.{name}.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
OF_OURS = {
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "log.index.size.max.bytes": "65536",
    "offsets.topic.replication.factor": "1000",
    "zookeeper.connection.timeout.ms": "60000",
}
"""Unless the scenario says otherwise: a client's question about a topic is not to create it, nor a
consumer's about its group's coordinator 50 partitions (for which there are never enough brokers),
thousands of partitions are to fit, and a JVM that boots on a busy machine has its time."""
LOGS = ("server", "state-change", "controller")
_THROWN = re.compile(r"[\w.$]+(Exception|Error)\b")
_STARTED = re.compile(rb"\[Kafka ?Server (id=)?\d+\],? started|, started \(kafka\.server")


class RealBroker:
    """A broker's disk, and its process while there is one. One thread owns it."""

    def __init__(
        self,
        broker: int,
        folder: Path,
        release: Release,
        *,
        is_large: bool = False,
    ) -> None:
        """`is_large`: among hundreds of brokers with thousands of partitions. A line for each state
        sent to each broker would be millions: such a broker logs none of them."""
        self._is_large = is_large
        self.id, self.folder, self.release = broker, folder, release
        self._reservations = [reserve(0)]
        self.port: int = self._reservations[0].getsockname()[1]
        self._child: Child | None = None
        self._logged_before = 0
        """Bytes of its log that are of processes before."""
        for name in ("logs", "data"):
            (folder / name).mkdir(parents=True)

    def install(self, release: Release) -> None:
        """What it runs from its next start on, on the same disk."""
        assert not self.runs, f"broker {self.id} runs"
        self.release = release

    def configure(
        self,
        settings: Mapping[str, str],
        open_listener: Callable[[Address], Address] | None = None,
        advertised: tuple[str, int] | None = None,
    ) -> None:
        """Before the first start. `open_listener` opens a proxy for other brokers in front of the
        given address. None: they use the same address as clients, `advertised` if it is given."""
        settings = {**OF_OURS, **settings}
        directories = settings.get("log.dirs", "data").split(",")
        own = {
            "broker.id": str(self.id),
            "log.dirs": ",".join(str(self.folder.resolve() / "data" / one) for one in directories),
        }
        if self.release.numbers < (0, 9):
            own |= {"port": str(self.port), "host.name": HOST, "advertised.host.name": HOST}
        elif open_listener is None:
            own["listeners"] = f"PLAINTEXT://{HOST}:{self.port}"
            if advertised is not None:
                own["advertised.listeners"] = "PLAINTEXT://{}:{}".format(*advertised)
        else:
            # Clients connect directly, other brokers through the advertised proxy.
            self._reservations.append(reserve(0))
            inside: int = self._reservations[-1].getsockname()[1]
            proxy = open_listener(Address(((HOST, inside),)))
            listener = f"PLAINTEXT://{HOST}:{self.port}"
            own |= {
                "listeners": f"{listener},BETWEEN://{HOST}:{inside}",
                "advertised.listeners": f"{listener},BETWEEN://{proxy}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BETWEEN:PLAINTEXT",
                "inter.broker.listener.name": "BETWEEN",
            }
        lines = [f"{key}={value}\n" for key, value in {**settings, **own}.items()]
        (self.folder / "server.properties").write_text("".join(lines), encoding="utf-8")
        appenders = "".join(_APPENDER.format(name=name) for name in LOGS)
        (self.folder / "log4j.properties").write_text(
            _LOG4J.format(
                appenders=appenders,
                partition="INFO" if self._is_large else "DEBUG",
                controller="INFO" if self._is_large else "TRACE",
            )
        )

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def runs(self) -> bool:
        return self._child is not None and not self._child.has_ended

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def accepts(self) -> bool:
        """Whether its sockets accept connections."""
        with socket.socket() as probe:
            probe.settimeout(0.2)
            return probe.connect_ex((HOST, self.port)) == 0

    def start(self) -> None:
        """Start a new JVM on the existing disk. Raises JavaNotFound."""
        assert not self.runs, f"broker {self.id} runs already"
        log = self.logs / "server.log"
        self._logged_before = log.stat().st_size if log.exists() else 0
        java = [
            find_java(),
            *_JVM,
            *(_LARGE if self._is_large else _SMALL),
            "-Dlog4j.configuration=file:log4j.properties",
            "-Dkafka.logs.dir=logs",
            "-cp",
            self.release.class_path,
            "kafka.Kafka",
            "server.properties",
        ]
        # In its folder: `logs` and both files have relative names.
        self._child = Child(java, self.folder, self.folder / "broker.out")

    def has_started(self) -> bool:
        """Whether its last process has logged that it is up."""
        log = self.logs / "server.log"
        if not log.exists():
            return False
        with log.open("rb") as file:
            file.seek(self._logged_before)
            return _STARTED.search(file.read()) is not None

    def last_error(self) -> str:
        """Why it ended, as far as its log tells."""
        for file in (self.logs / "server.log", self.folder / "broker.out"):
            lines = file.read_text(errors="replace").splitlines() if file.exists() else []
            # The exception itself says more than the log line before it.
            errors = [one for one in lines if _THROWN.match(one)] or [
                one for one in lines if re.search(r"\b(FATAL|ERROR|Exception|Error)\b", one)
            ]
            if errors:
                return errors[-1].strip()[:300]
        return "no word in its log"

    def signal(self, number: signal.Signals) -> None:
        if self.runs and self._child is not None:
            self._child.signal(number)

    def exit_code(self, timeout_s: float) -> int | None:
        """Of its last process; negative: the signal that ended it; None while it runs."""
        return None if self._child is None else self._child.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def close(self) -> None:
        """Nothing of it runs any more, and its ports are free."""
        self.kill()
        for one in self._reservations:
            one.close()
