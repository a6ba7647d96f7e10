"""A recording's settings and stimuli as a scenario: all of it that may reach the core.

Everything else in the recording is for the judge. A stimulus or version that cannot be played is
an error of its own, never a pass. Knows the format of recordings and of scenarios, no world.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from emulator.conformance.recording import Fact, Recording
from emulator.kafka.profiles.base import profiles
from emulator.scenario.actions.base import Stimulus, stimuli
from emulator.scenario.actions.clients import Send
from emulator.scenario.actions.life import Start
from emulator.scenario.schema import Boot, Scenario, Step, ZooKeeperSettings
from emulator.scenario.version import Chosen, read_version

AS_RECORDED = Chosen()

QUIET_AFTER_LAST_US = 3_000_000
"""A run goes on for this long after the last stimulus."""

ONLY_ONE = (0,)
"""Where records are sent to a topic of one partition, the recording does not name it."""

LATE_MS = 25
"""A driver's round is up to so much late."""

_NOT_CARRIED_OUT = frozenset({"up", "start", "registered", "exited"})
"""Starts are put in with the registrations that they lead to."""
_ABOUT_THE_RECORDING = frozenset({"t", "kind", "returned", "sent", "last_offset"})


class CannotPlay(Exception):
    """The recording holds something that the emulator has no stimulus, setting or profile for."""


def scenario_of(recording: Recording, chosen: Chosen = AS_RECORDED) -> Scenario:
    """The scenario that plays what the recording's cluster was put through, on the version that it
    ran unless another was chosen."""
    steps = [_step(fact) for fact in _carried_out(recording)]
    steps += _restarts(recording)
    settings, zookeeper = _settings(recording.settings)
    profile = chosen.profile or _profile(recording)
    version = read_version({}, msgspec.structs.replace(chosen, profile=profile))
    return Scenario(
        name=recording.name.rstrip("/").rsplit("/", 1)[-1],
        about="The stimuli of a recording.",
        profile=version.profile,
        guards=dict(version.guards),
        propagation=version.propagation,
        boots=tuple(_boots(recording)),
        settings=settings,
        broker_settings={},
        zookeeper=zookeeper,
        steps=tuple(sorted(steps, key=lambda step: step.at_us)),
        duration_us=max((s.at_us for s in steps), default=0) + QUIET_AFTER_LAST_US,
    )


def _carried_out(recording: Recording) -> Iterator[Fact]:
    begun: dict[tuple[object, object], Fact] = {}
    for fact in recording.of("stimulus"):
        producer = fact.get("topic"), fact.get("acks")
        if fact["do"] == "produce":
            begun[producer] = fact
        if fact["do"] == "produce_stop" and "sent" in fact and producer in begun:
            yield {**fact, "t": _stopped_ms(begun[producer], fact)}
        elif fact["do"] not in _NOT_CARRIED_OUT:
            yield fact


def _stopped_ms(begun: Fact, stopped: Fact) -> int:
    """A stop is written down when the client has let go of all that it had (flush), up to seconds
    after its driver's last round; how many rounds there were, the recording says."""
    period_ms = 1000 / begun["rate"]
    over_ms = begun["t"] + round(stopped["sent"] * period_ms)
    flushed = stopped["t"] - over_ms > max(period_ms, LATE_MS)
    return over_ms if flushed else int(stopped["t"])


def _profile(recording: Recording) -> str:
    digits = 3 if recording.version[0] == 0 else 2
    line = ".".join(str(part) for part in recording.version[:digits])
    if line not in profiles():
        raise CannotPlay(
            f"{recording.name}: no profile for Kafka {recording.settings['kafka']}"
            f" (there are {', '.join(profiles())})"
        )
    return line


def _settings(first_line: Fact) -> tuple[dict[str, str], ZooKeeperSettings]:
    kafka: dict[str, str] = {}
    zookeeper: dict[str, int] = {}
    for key, value in first_line.items():
        if key in ("t", "kind", "kafka"):
            continue
        name = key.removeprefix("zookeeper.")
        if name in _ZOOKEEPER:
            zookeeper[_ZOOKEEPER[name]] = int(value)
        else:
            kafka[key] = str(value)
    return kafka, ZooKeeperSettings(**zookeeper)


_ZOOKEEPER = {
    "tickTime": "tick_time_ms",
    "minSessionTimeout": "min_session_timeout_ms",
    "maxSessionTimeout": "max_session_timeout_ms",
}


def _boots(recording: Recording) -> list[Boot]:
    """Each broker's first registration: the moment from which the cluster sees it; and when that
    process was launched."""
    boots: dict[int, Boot] = {}
    launched: dict[int, int] = {}
    for fact in recording.of("stimulus"):
        if fact["do"] == "start":
            launched.setdefault(fact["broker"], fact["t"] * 1000)
        elif fact["do"] == "registered" and fact["broker"] not in boots:
            broker, at_us = fact["broker"], fact["t"] * 1000
            boots[broker] = Boot(broker, None, at_us, launched.get(broker))
    return list(boots.values())


def _restarts(recording: Recording) -> list[Step]:
    """Later processes of a broker: launched at `start`, registered at the moment given."""
    steps: list[Step] = []
    launched: dict[int, int] = {}
    seen: dict[int, None] = {}
    for fact in recording.of("stimulus"):
        if fact["do"] == "start":
            launched[fact["broker"]] = fact["t"]
        elif fact["do"] == "registered":
            broker = fact["broker"]
            if broker in seen:
                steps.append(Step(launched[broker] * 1000, Start(broker, fact["t"])))
            seen[broker] = None
    return steps


def _step(fact: Fact) -> Step:
    known = stimuli()
    do = fact["do"]
    if do not in known:
        raise CannotPlay(f"no stimulus {do} (there are {', '.join(sorted(known))})")
    return Step(fact["t"] * 1000, _stimulus(known[do], fact))


def _stimulus(kind: type[Stimulus], fact: Fact) -> Stimulus:
    given: dict[str, Any] = {k: v for k, v in fact.items() if k not in _ABOUT_THE_RECORDING}
    if kind is Send:
        given.setdefault("partitions", ONLY_ONE)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise CannotPlay(f"stimulus {fact['do']} at {fact['t']} ms: {error}") from None
