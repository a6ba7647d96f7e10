"""Kafka's own command-line tools, for what the client library cannot ask of a version.

Owns which tool does what, and with which words: topics, reassignments and elections by znode, and
configuration up to 2.2, as the shell scripts of a release call them. Each command is a JVM of its
own with a session of its own. It must not know when it is called.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from emulator.scenario.actions import admin
from emulator.scenario.actions.base import Stimulus
from emulator.scenario.actions.delete_controller import DeleteController
from emulator.worlds.real_kafka.release import Release
from zk.real.server import find_java

PATIENCE_S = 60.0
LAST = (2, 8)
"""From 3.0 on the tools have no --zookeeper."""
_SINCE: dict[type, tuple[int, ...]] = {
    admin.CreateTopic: (1, 0),
    admin.AddPartitions: (1, 0),
    admin.DeleteTopic: (1, 0),
    admin.Reassign: (2, 4),
    admin.PreferredElection: (2, 4),
    admin.TopicConfig: (2, 3),
    admin.BrokerConfig: (2, 3),
}
"""From which version on the client library knows a request that brokers understand."""


def is_by_tool(request: Stimulus, numbers: tuple[int, ...]) -> bool:
    """A tool is to do it, and not the client library."""
    if isinstance(request, DeleteController) or getattr(request, "through", "api") == "znode":
        return True
    return numbers < _SINCE.get(type(request), (0,))


def why_not(request: Stimulus, numbers: tuple[int, ...]) -> str | None:
    """Why no tool of this version can do it."""
    if type(request) not in _WORDS:
        return "neither the client that is used nor Kafka's own tools of this version do it"
    if numbers[:2] > LAST and not isinstance(request, DeleteController):
        return "from 3.0 on Kafka's own tools write no command znodes"
    if isinstance(request, admin.Reassign) and request.replicas is None:
        return "before 2.4 a reassignment cannot be cancelled"
    return None


class Tools:
    """Runs them against one cluster; `zookeeper` is where they connect."""

    def __init__(self, release: Release, zookeeper: str, folder: Path) -> None:
        self._release, self._zookeeper, self._folder = release, zookeeper, folder
        self._made = 0

    def do(self, request: Stimulus) -> str:
        """`NONE`, or the last line of what the tool said."""
        words = _WORDS[type(request)](request, self._zookeeper, self._file)
        if isinstance(request, DeleteController) and self._release.numbers >= (2, 5):
            words[0] = "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"
        command = [find_java(), "-Xmx128m", "-cp", self._release.class_path, *words]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=PATIENCE_S
            )
        except subprocess.TimeoutExpired:
            return "TIMED_OUT"
        said = (done.stdout + done.stderr).strip().splitlines()
        failed = done.returncode or any(line.startswith("Error") for line in said)
        return (said[-1] if said else f"exit code {done.returncode}") if failed else "NONE"

    def _file(self, content: Any) -> str:
        """What a tool reads from a file."""
        self._made += 1
        path = self._folder / f"tool-{self._made}.json"
        path.write_bytes(msgspec.json.encode(content))
        return str(path)


File = Callable[[Any], str]
Words = Callable[[Any, str, File], list[str]]


def _topic(what: str, topic: str, zookeeper: str) -> list[str]:
    return ["kafka.admin.TopicCommand", "--zookeeper", zookeeper, what, "--topic", topic]


def _create(request: admin.CreateTopic, zookeeper: str, file: File) -> list[str]:
    words = _topic("--create", request.topic, zookeeper)
    if request.assignment:
        words += ["--replica-assignment", _assignment(request.assignment)]
    else:
        words += ["--partitions", str(request.num_partitions)]
        words += ["--replication-factor", str(request.replication_factor)]
    return words + [
        word for pair in request.config.items() for word in ("--config", "=".join(pair))
    ]


def _assignment(assignment: Any) -> str:
    return ",".join(":".join(map(str, replicas)) for replicas in assignment)


def _add(request: admin.AddPartitions, zookeeper: str, file: File) -> list[str]:
    words = _topic("--alter", request.topic, zookeeper)
    return [*words, "--partitions", str(request.count)]


def _delete(request: admin.DeleteTopic, zookeeper: str, file: File) -> list[str]:
    return _topic("--delete", request.topic, zookeeper)


def _reassign(request: admin.Reassign, zookeeper: str, file: File) -> list[str]:
    move = {
        "topic": request.topic,
        "partition": request.partition,
        "replicas": list(request.replicas or ()),
    }
    moves = file({"version": 1, "partitions": [move]})
    return ["kafka.admin.ReassignPartitionsCommand", "--zookeeper", zookeeper, "--execute",
            "--reassignment-json-file", moves]  # fmt: skip


def _elect(request: admin.PreferredElection, zookeeper: str, file: File) -> list[str]:
    words = ["kafka.admin.PreferredReplicaLeaderElectionCommand", "--zookeeper", zookeeper]
    if request.partitions is None:
        return words
    named = [{"topic": topic, "partition": number} for topic, number in request.partitions]
    return [*words, "--path-to-json-file", file({"partitions": named})]


def _delete_controller(request: DeleteController, zookeeper: str, file: File) -> list[str]:
    return ["org.apache.zookeeper.ZooKeeperMain", "-server", zookeeper, "delete", "/controller"]


def _config(kind: str, name: str, config: Mapping[str, str], zookeeper: str) -> list[str]:
    pairs = ",".join("=".join(pair) for pair in config.items())
    return ["kafka.admin.ConfigCommand", "--zookeeper", zookeeper, "--alter", "--entity-type", kind,
            "--entity-name", name, "--add-config", pairs]  # fmt: skip


def _topic_config(request: admin.TopicConfig, zookeeper: str, file: File) -> list[str]:
    return _config("topics", request.topic, request.config, zookeeper)


def _broker_config(request: admin.BrokerConfig, zookeeper: str, file: File) -> list[str]:
    return _config("brokers", str(request.broker), request.config, zookeeper)


_WORDS: dict[type, Words] = {
    admin.CreateTopic: _create,
    admin.AddPartitions: _add,
    admin.DeleteTopic: _delete,
    admin.Reassign: _reassign,
    admin.PreferredElection: _elect,
    admin.TopicConfig: _topic_config,
    admin.BrokerConfig: _broker_config,
    DeleteController: _delete_controller,
}
