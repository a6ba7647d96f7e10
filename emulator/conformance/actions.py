"""Converts a recording's settings and actions to a scenario: the only parts that may reach the
core.

Everything else in the recording is for the judge. An action or version that cannot be played is an
error of its own, never a pass. Knows the format of recordings and of scenarios, no world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

import msgspec

from emulator.conformance.processes import processes_of
from emulator.conformance.recording import Fact, Recording
from emulator.conformance.znodes import broker_of_registration, decode_registration
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.controller import DELETION_MARKERS_CLEARED
from emulator.scenario.actions.admin import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    PreferredElection,
    Reassign,
)
from emulator.scenario.actions.base import Action, actions
from emulator.scenario.actions.clients import Send
from emulator.scenario.actions.life import Start
from emulator.scenario.schema import Boot, Scenario, Step, ZooKeeperSettings
from emulator.scenario.version import VersionOptions, read_version
from emulator.worlds.real_kafka.tools import needs_tool
from zk.paths import DELETE_TOPICS, REASSIGN_PARTITIONS

AS_RECORDED = VersionOptions()

QUIET_AFTER_LAST_US = 3_000_000
"""How long a run continues after its last action."""

ONLY_ONE = (0,)
"""Recordings omit the partition when records are sent to a topic with one partition."""

CALLS_MS: Mapping[type[Action], int] = {
    CreateTopic: 11,
    AddPartitions: 14,
    Reassign: 13,
    DeleteTopic: 3,
    PreferredElection: 3,
}
"""A recorder notes a client's request when a broker first asks ZooKeeper for what it is about. The
call is this much earlier: so long it takes in plays (medians)."""

RECONNECT_PAUSE_MS = 500
"""Before it connects again, ZooKeeper's client waits for up to a second; this is the middle."""

LATE_MS = 25
"""The maximum delay of a driver's round."""

_ABOUT_PROCESSES = frozenset({"up", "start", "registered", "exited"})
_ABOUT_THE_RECORDING = frozenset({"t", "kind", "returned", "sent", "last_offset"})
_ZOOKEEPER = {
    "tickTime": "tick_time_ms",
    "minSessionTimeout": "min_session_timeout_ms",
    "maxSessionTimeout": "max_session_timeout_ms",
}


ADMINISTRATOR, RETRIES = "administrator", "retries"
"""The setting of a recording whose admin client looks for a new controller. Older ones do not have
it: their client remembers the controller that it knew when the cluster was up."""


class CannotPlay(Exception):
    """The recording holds something that the emulator has no action, setting or profile for."""


def scenario_of(recording: Recording, chosen: VersionOptions = AS_RECORDED) -> Scenario:
    """The scenario that repeats the recorded actions, on the recorded version unless another was
    chosen.
    """
    digits = 3 if recording.version[0] == 0 else 2
    recorded_on = ".".join(str(part) for part in recording.version[:digits])
    if not chosen.profile and recorded_on not in profiles():
        raise CannotPlay(
            f"{recording.name}: no profile for Kafka {recording.settings['kafka']}"
            f" (there are {', '.join(profiles())})"
        )
    profile = chosen.profile or recorded_on
    version = read_version({}, msgspec.structs.replace(chosen, profile=profile))

    kafka: dict[str, str] = {}
    zookeeper: dict[str, int] = {}
    for key, value in recording.settings.items():
        name = key.removeprefix("zookeeper.")
        if name in _ZOOKEEPER:
            zookeeper[_ZOOKEEPER[name]] = int(value)
        elif key not in ("t", "kind", "kafka", ADMINISTRATOR):
            kafka[key] = str(value)

    only_if_enabled = DELETION_MARKERS_CLEARED not in profiles()[version.profile].guards
    if only_if_enabled and _watches_deletions(recording):
        kafka.setdefault("delete.topic.enable", "true")

    boots, restarts = _processes(recording)
    steps = [*_steps(recording), *restarts]
    return Scenario(
        name=recording.name.rstrip("/").rsplit("/", 1)[-1],
        about="The actions of a recording.",
        profile=version.profile,
        guards=dict(version.guards),
        propagation=version.propagation,
        boots=boots,
        settings=kafka,
        broker_settings={},
        ports=ports_of(recording),
        remembers_controller=recording.settings.get(ADMINISTRATOR) != RETRIES,
        zookeeper=ZooKeeperSettings(**zookeeper),
        steps=tuple(sorted(steps, key=lambda step: step.at_us)),
        duration_us=max(
            max((s.at_us for s in steps), default=0) + QUIET_AFTER_LAST_US,
            # A slow recorder notes what comes later still; a shorter play could not show it.
            (last_fact_ms(recording) + 1) * 1000,
        ),
    )


def last_fact_ms(recording: Recording) -> int:
    return max((fact["t"] for fact in recording.events if fact["t"] is not None), default=-1)


def ports_of(recording: Recording) -> dict[int, int]:
    """The ports of brokers, from the content of their registrations, or where only the inputs of a
    recording are left, from their starts. A broker keeps its port."""
    ports = {
        fact["broker"]: fact["port"]
        for fact in recording.of("stimulus")
        if fact["do"] == "start" and isinstance(fact.get("port"), int)
    }
    for fact in recording.of("zookeeper"):
        for op in fact.get("ops", [fact]):
            broker, data = broker_of_registration(op.get("path") or ""), op.get("data")
            if broker is not None and data:
                port = decode_registration(data).port
                if port > 0:
                    ports[broker] = port
    return ports


def _watches_deletions(recording: Recording) -> bool:
    """Recordings of 0.8.2.2 that another recorder made do not list `delete.topic.enable`. Up to 0.9
    only a controller that deletes topics watches their markers."""
    return any(
        fact.get("path") == DELETE_TOPICS and fact.get("watch")
        for fact in recording.of("zookeeper_request")
    )


def _steps(recording: Recording) -> Iterator[Step]:
    """The actions on the cluster, except process starts."""
    kinds = actions()
    begun: dict[tuple[object, object], Fact] = {}
    for fact in recording.of("stimulus"):
        do, at_ms, producer = fact["do"], fact["t"], (fact.get("topic"), fact.get("acks"))
        if do in _ABOUT_PROCESSES:
            continue
        if do not in kinds:
            raise CannotPlay(f"no action {do} (there are {', '.join(sorted(kinds))})")
        if do == "produce":
            begun[producer] = fact
        elif do == "produce_stop" and "sent" in fact and producer in begun:
            # A stop is logged when the client has flushed, up to seconds after its driver's last
            # round. The number of rounds follows from "sent".
            period_ms = 1000 / begun[producer]["rate"]
            over_ms = begun[producer]["t"] + round(fact["sent"] * period_ms)
            if at_ms - over_ms > max(period_ms, LATE_MS):
                at_ms = over_ms
        parameters = {key: fact[key] for key in fact if key not in _ABOUT_THE_RECORDING}
        if kinds[do] is Send:
            parameters.setdefault("partitions", ONLY_ONE)
        try:
            action = msgspec.convert(parameters, kinds[do], strict=False)
        except msgspec.ValidationError as error:
            raise CannotPlay(f"action {do} at {at_ms} ms: {error}") from None
        if is_call(fact, recording.version):
            if isinstance(action, Reassign):
                at_ms = _before_connecting(recording, at_ms)
            at_ms = max(0, at_ms - CALLS_MS[type(action)])
        yield Step(int(at_ms) * 1000, action)


def is_call(action: Fact, version: tuple[int, ...]) -> bool:
    """Whether a client sent it as a request. Otherwise a tool wrote a znode."""
    kind = actions().get(action["do"])
    if kind is None or kind not in CALLS_MS:
        return False
    return not needs_tool(kind, action.get("through", "api"), version)


def _before_connecting(recording: Recording, noted_ms: float) -> float:
    """When a reassignment was requested that the controller checked right after it had connected to
    ZooKeeper: its first check was lost with the connection, and is not recorded. Only plays use
    this: judges measure delays from where the recorder noted it."""
    requests = [one for one in recording.of("zookeeper_request") if one["t"] <= noted_ms]
    checked: Fact | None = None
    for request in reversed(requests):
        if checked is None:
            if request["op"] == "exists" and request.get("path") == REASSIGN_PARTITIONS:
                checked = request
            elif request["op"] != "multi":
                break
        elif request["broker"] == checked["broker"]:
            if request["op"] == "connect":
                return float(request["t"] - RECONNECT_PAUSE_MS)
            if request["op"] != "setWatches":
                break
    return noted_ms


def _processes(recording: Recording) -> tuple[tuple[Boot, ...], list[Step]]:
    """Each broker's first process and its later ones. A process's time is that of its registration,
    when it becomes visible to the cluster; its launch is the `start` action. One that ended before
    would have registered after the recording's median boot: a JVM is silent for some 0.7 s."""
    boots: dict[int, Boot] = {}
    restarts: list[Step] = []
    processes = processes_of(recording)
    boots_ms = [one.boot_ms for one in processes if one.boot_ms is not None]
    for process in processes:
        broker, launched_ms = process.broker, process.launched_ms
        launched_us = None if launched_ms is None else launched_ms * 1000
        if broker in boots:
            assert launched_ms is not None, f"broker {broker} registers again without a start"
            registers_ms = process.registers_ms
            if registers_ms is None and boots_ms:
                registers_ms = launched_ms + round(median(boots_ms))
            restarts.append(Step(launched_ms * 1000, Start(broker, registers_ms)))
        elif process.registers_ms is not None:
            boots[broker] = Boot(broker, None, process.registers_ms * 1000, launched_us)
    return tuple(boots.values()), restarts
