"""Kafka's own command-line tools, for requests that the client library does not support for a
version.

Owns which tool does what, and its arguments: topics, reassignments and elections by znode, and
configuration up to 2.2, as a release's shell scripts call them. Each command has its own JVM and
its own session. Does not know when it is called.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from emulator.scenario.actions import admin
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.delete_controller import DeleteController
from emulator.worlds.real_kafka.release import Release
from zk.real.server import find_java

PATIENCE_S = 60.0
LAST = (2, 8)
"""From 3.0 on the tools have no --zookeeper."""
_SINCE: dict[type, tuple[int, ...]] = {
    admin.CreateTopic: (0, 10, 1),
    admin.AddPartitions: (1, 0),
    admin.DeleteTopic: (0, 10, 1),
    admin.DeleteRecords: (0, 11),
    admin.Reassign: (2, 4),
    admin.PreferredElection: (2, 4),
    admin.TopicConfig: (2, 3),
    admin.BrokerConfig: (2, 3),
}
"""From which version on the client library knows a request that brokers understand."""


def is_by_tool(request: Action, numbers: tuple[int, ...]) -> bool:
    """Whether a tool has to do it instead of the client library."""
    return needs_tool(type(request), getattr(request, "through", "api"), numbers)


def needs_tool(kind: type, through: str, numbers: tuple[int, ...]) -> bool:
    """The same, of a kind of request."""
    if kind is DeleteController or through == "znode":
        return True
    return numbers < _SINCE.get(kind, (0,))


def unsupported_reason(request: Action, numbers: tuple[int, ...]) -> str | None:
    """Why no tool of this version supports it."""
    if type(request) not in {*_SINCE, DeleteController}:
        return "neither the client that is used nor Kafka's own tools of this version do it"
    if numbers[:2] > LAST and not isinstance(request, DeleteController):
        return "from 3.0 on Kafka's own tools write no command znodes"
    if isinstance(request, admin.AddPartitions) and request.assignment and numbers < (0, 9):
        return "before 0.9 the tool chooses the replicas of new partitions itself"
    if isinstance(request, admin.DeleteRecords):
        return "before 0.11 records cannot be deleted on request"
    if isinstance(request, admin.Reassign) and request.replicas is None:
        return "before 2.4 a reassignment cannot be cancelled"
    return None


Replicas = list[list[int]]
"""The replicas of each partition of a topic."""


class Tools:
    """Runs the tools against one cluster; `zookeeper` is the address to connect to, `replicas_of`
    says which partitions a topic has now."""

    def __init__(
        self,
        release: Release,
        zookeeper: str,
        folder: Path,
        replicas_of: Callable[[str], Replicas],
    ) -> None:
        self._release, self._zookeeper, self._folder = release, zookeeper, folder
        self._replicas_of = replicas_of
        self._files = 0
        self._lock = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen[str] | None = None

    def do(self, request: Action) -> str:
        """Returns `NONE`, or the last line of the tool's output."""
        words = self._words(request)
        command = [find_java(), "-Xmx128m", "-cp", self._release.class_path, *words]
        pipe = subprocess.PIPE
        with self._lock:
            if self._closed:
                return "CLOSED"
            process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
            self._process = process
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "TIMED_OUT"
        lines = (out + err).strip().splitlines()
        # Old tools print the error and exit with 0.
        failed = process.returncode or any(line.startswith("Error") for line in lines)
        return (lines[-1] if lines else f"exit code {process.returncode}") if failed else "NONE"

    def close(self) -> None:
        """Kill the tool that runs, from any thread, and start no other."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _words(self, request: Action) -> list[str]:
        """The arguments of `java`."""
        at = ["--zookeeper", self._zookeeper]
        match request:
            case admin.CreateTopic():
                words = ["kafka.admin.TopicCommand", *at, "--create", "--topic", request.topic]
                if request.assignment:
                    words += ["--replica-assignment", _listed(request.assignment)]
                else:
                    words += ["--partitions", str(request.num_partitions)]
                    words += ["--replication-factor", str(request.replication_factor)]
                for pair in request.config.items():
                    words += ["--config", "=".join(pair)]
                return words
            case admin.AddPartitions():
                words = ["kafka.admin.TopicCommand", *at, "--alter", "--topic", request.topic]
                return [*words, *self._enlarged(request)]
            case admin.DeleteTopic():
                return ["kafka.admin.TopicCommand", *at, "--delete", "--topic", request.topic]
            case admin.Reassign():
                move = {
                    "topic": request.topic,
                    "partition": request.partition,
                    "replicas": list(request.replicas or ()),
                }
                moves = self._file({"version": 1, "partitions": [move]})
                words = ["kafka.admin.ReassignPartitionsCommand", *at, "--execute"]
                return [*words, "--reassignment-json-file", moves]
            case admin.PreferredElection():
                words = ["kafka.admin.PreferredReplicaLeaderElectionCommand", *at]
                if request.partitions is None:
                    return words
                named = [{"topic": topic, "partition": n} for topic, n in request.partitions]
                return [*words, "--path-to-json-file", self._file({"partitions": named})]
            case admin.TopicConfig(topic=name) | admin.BrokerConfig(broker=name):
                kind = "topics" if isinstance(request, admin.TopicConfig) else "brokers"
                pairs = ",".join("=".join(pair) for pair in request.config.items())
                words = ["kafka.admin.ConfigCommand", *at, "--alter", "--entity-type", kind]
                return [*words, "--entity-name", str(name), "--add-config", pairs]
            case DeleteController():
                # As zookeeper-shell.sh calls it from 2.5 on (KIP-515).
                shell = "org.apache.zookeeper.ZooKeeperMain"
                if self._release.numbers >= (2, 5):
                    shell += "WithTlsSupportForKafka"
                return [shell, "-server", self._zookeeper, "delete", "/controller"]
        raise AssertionError(f"{request.name}: Capabilities refuse it")

    def _enlarged(self, request: admin.AddPartitions) -> list[str]:
        if not request.assignment:
            return ["--partitions", str(request.count)]
        # The tool wants the existing partitions, too, and skips as many entries.
        every = [*self._replicas_of(request.topic), *request.assignment]
        return ["--partitions", str(len(every)), "--replica-assignment", _listed(every)]

    def _file(self, content: object) -> str:
        """Write a file that a tool reads."""
        self._files += 1
        path = self._folder / f"tool-{self._files}.json"
        path.write_bytes(msgspec.json.encode(content))
        return str(path)


def _listed(assignment: Iterable[Sequence[int]]) -> str:
    """As the tools want it: 1:2:3,2:3:1."""
    return ",".join(":".join(map(str, replicas)) for replicas in assignment)
