"""Draws a random world from a seed, as the text of a scenario file.

The safety phase has a cluster, topics, clients, and a schedule of all actions that declare how they
are drawn. Then everything is healed, and after a while the cluster must have converged. This module
knows by name only the actions that create a cluster and heal it. A seed gives the same text on
every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import yaml

from emulator.conformance.actions import QUIET_AFTER_LAST_US
from emulator.kernel.rng import Stream, mix
from emulator.scenario.actions.base import Action, actions
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.drawing import Draw
from emulator.scenario.actions.life import Start
from emulator.scenario.version import VersionOptions, read_version, switch_words
from emulator.scenario.written import parameters, plain

AS_USUAL = VersionOptions()

LIVENESS_MS = 180_000
"""How long a healed cluster may take to converge: the 60 s rule of notifications, sessions, several
consecutive timeouts."""

RESTARTS_MS = (0, 20_000, 40_000)
"""When brokers that ended are started after the healing; repeated, because a start may fail."""

FIRST_FAULT_MS = 4_000

SETTLING_MS = 20_000
"""How long a recorded script continues after everything is healed, so that restarts complete."""

SETTLED = "the cluster converges"

Entry = dict[str, object]


def draw_world(seed: int, chosen: VersionOptions = AS_USUAL, *, storage: bool = False) -> str:
    """The scenario of a seed, as YAML, without settings that the version does not have. `storage`:
    logs in files, and disk faults."""
    version = read_version({}, chosen)
    known = version.of(version.profile).defaults
    stream = Stream(mix(seed ^ 0x46555A5A))
    # The order of draws determines the world, so existing draws must keep their order.
    brokers = tuple(range(1, (2, 3, 3, 3, 3, 4, 5)[stream.below(7)] + 1))
    settings = {name: value for name, value in _settings(stream).items() if name in known}
    draw = Draw(stream, brokers, {}, settings, in_files=storage)
    topics = {f"t{n}": _topic(draw, f"t{n}") for n in range(draw.between(1, 3))}
    safety_ms = FIRST_FAULT_MS + draw.spread(4_000, 40_000)
    workload = list(_workload(draw, safety_ms))
    number = draw.between(1, 12)
    faults = _faults(draw, (FIRST_FAULT_MS, safety_ms), number, _kinds())
    faults += restarts(brokers, safety_ms)
    world: Entry = {"about": f"A random world, drawn from seed {seed}."}
    if chosen.profile:
        world["profile"] = version.profile
    if version.guards:
        world["guards"] = switch_words(version.guards)
    if version.propagation:
        world["propagation"] = version.propagation
    cluster: Entry = {"brokers": list(brokers), "first": draw.broker, "config": settings}
    world |= {
        "cluster": {**cluster, "storage": "files"} if storage else cluster,
        "topics": topics,
        "workload": workload,
        "faults": faults,
        "run": _time(safety_ms + LIVENESS_MS),
        "expect": [SETTLED],
    }
    return written(world)


def draw_script(
    seed: int, brokers: int, chosen: VersionOptions, is_possible: Callable[[Action], bool]
) -> str:
    """Draw a scenario of 60 to 120 s for a cluster that will be recorded, as YAML. It has only
    faults that `is_possible` accepts, and none that decides about each message by chance."""
    stream = Stream(mix(seed ^ 0x53435249))
    everyone = tuple(range(1, brokers + 1))
    settings = {
        "replica.lag.time.max.ms": str(stream.between(1_500, 4_000)),
        "zookeeper.session.timeout.ms": str(stream.between(4_000, 9_000)),
        "min.insync.replicas": str(stream.between(1, 2)),
    }
    draw = Draw(stream, everyone, {}, settings)
    topics = {f"t{n}": _topic(draw, f"t{n}") for n in range(draw.between(2, 3))}
    run_ms = draw.between(60_000, 120_000)
    healed_ms, produced_ms = run_ms - SETTLING_MS, run_ms - QUIET_AFTER_LAST_US // 1000
    # Producers end last: a play of the recording ends a while after its last action.
    workload = [
        {"produce": topic, "rate": 20, "acks": acks, "from": "2500ms", "until": _time(produced_ms)}
        for topic in list(draw.topics)
        for acks in [draw.one_of(("all", "1"))]
        if is_possible(Produce(topic, (0,), 20, acks))
    ]
    number = draw.between(4, 9)
    repeatable = [one for one in _kinds() if not one.is_random]
    faults = _faults(draw, (FIRST_FAULT_MS, healed_ms), number, repeatable, is_possible)
    world = {
        "about": f"A random script for {brokers} brokers, drawn from seed {seed}.",
        "profile": chosen.profile,
        "cluster": {"brokers": list(everyone), "first": draw.broker, "config": settings},
        "topics": topics,
        **({"workload": workload} if workload else {}),
        "faults": [*faults, *(started(healed_ms, broker) for broker in everyone)],
        "run": _time(run_ms),
    }
    return written(world)


def written(world: Mapping[str, object]) -> str:
    """The world as a scenario file."""
    return str(yaml.safe_dump(dict(world), sort_keys=False, default_flow_style=None, width=100))


def healed_us(text: str) -> int:
    """When everything is healed, in microseconds since the cluster was up."""
    return int(yaml.safe_load(text)["run"].removesuffix("ms")) * 1000 - LIVENESS_MS * 1000


def _time(ms: int) -> str:
    return f"{ms}ms"


def _settings(stream: Stream) -> dict[str, str]:
    """Short times, so that much happens; all are valid in Kafka."""
    lag_ms = stream.between(800, 6_000)
    drawn = {
        "replica.lag.time.max.ms": lag_ms,
        "replica.fetch.wait.max.ms": min(lag_ms, stream.between(100, 500)),
        "zookeeper.session.timeout.ms": stream.between(1_500, 6_000),
        "request.timeout.ms": stream.between(1_500, 20_000),
        "controller.socket.timeout.ms": stream.between(1_500, 20_000),
        "replica.socket.timeout.ms": stream.between(1_500, 20_000),
        "num.io.threads": (1, 2, 8)[stream.below(3)],
        "num.replica.fetchers": (1, 1, 2)[stream.below(3)],
        "replica.fetch.backoff.ms": stream.between(100, 1_000),
        "controlled.shutdown.retry.backoff.ms": stream.between(200, 3_000),
        "leader.imbalance.check.interval.seconds": stream.between(5, 60),
        "unclean.leader.election.enable": ("false", "false", "true")[stream.below(3)],
        "min.insync.replicas": stream.between(1, 2),
    }
    if stream.below(2):
        drawn["log.flush.interval.messages"] = stream.between(1, 200)
    drawn["request.timeout.ms"] = max(drawn["request.timeout.ms"], 1000)
    return {name: str(value) for name, value in drawn.items()}


def _topic(draw: Draw, name: str) -> Entry:
    factor = draw.between(1, min(3, len(draw.brokers)))
    if draw.chance(70):
        factor = min(3, len(draw.brokers))
    draw.topics[name] = [draw.replicas(factor) for _ in range(draw.between(1, 5))]
    return {"partitions": [list(replicas) for replicas in draw.topics[name]]}


def _workload(draw: Draw, safety_ms: int) -> Iterator[Entry]:
    for topic in list(draw.topics):
        for _ in range(draw.between(0, 2)):
            yield {
                "produce": topic,
                "rate": draw.spread(1, 40),
                "acks": draw.one_of(("all", "all", "1")),
                "record_bytes": draw.spread(10, 5_000),
                "from": "2500ms",
                "until": _time(safety_ms + draw.between(0, 8_000)),
            }
        if draw.chance(30):
            yield {"consume": topic, "from": "3000ms"}


def _kinds() -> list[type[Action]]:
    """All kinds of actions, by name: the order of the draws."""
    return [kind for _, kind in sorted(actions().items())]


def _faults(
    draw: Draw,
    within_ms: tuple[int, int],
    number: int,
    kinds: Sequence[type[Action]],
    is_possible: Callable[[Action], bool] = lambda _: True,
) -> list[Entry]:
    """The schedule in order of time. Actions that hold the same resource do not overlap."""
    from_ms, until_ms = within_ms
    often = [
        kind for kind in kinds for _ in range(kind.weight + draw.in_files * kind.weight_on_files)
    ]
    moments = sorted(draw.between(from_ms, until_ms - 1) for _ in range(number))
    entries: list[Entry] = []
    held: dict[tuple[object, ...], int] = {}
    for standing in [one for kind in kinds for one in kind.standing(draw)]:
        if not is_possible(standing):
            continue
        held[standing.holds()] = until_ms
        entry: Entry = {"at": _time(from_ms), standing.name: parameters_of(standing)}
        entries.append(entry | {"for": _time(until_ms - from_ms)})
    for at_ms in moments:
        topics = {name: list(replicas) for name, replicas in draw.topics.items()}
        action = draw.one_of(often).drawn(draw)
        while action is not None and not is_possible(action):
            # A refused action has added no partitions, and deleted no topic.
            draw.topics.clear()
            draw.topics.update({name: list(replicas) for name, replicas in topics.items()})
            action = draw.one_of(often).drawn(draw)
        if action is None or held.get(action.holds(), 0) > at_ms:
            continue
        entry = {"at": _time(at_ms), action.name: parameters_of(action)}
        if action.healed() is not None:
            lasts_ms = draw.spread(*action.lasts_ms)
            end_ms = min(at_ms + lasts_ms, until_ms)
            held[action.holds()] = end_ms + 1
            entry["for"] = _time(end_ms - at_ms)
        entries.append(entry)
    return entries


def parameters_of(action: Action) -> dict[str, object]:
    """The parameters that differ from the defaults; if none does, the defaults that can be
    written."""
    fields = msgspec.structs.asdict(action)
    return parameters(action) or {
        name: plain(value) for name, value in fields.items() if value is not None
    }


def restarts(brokers: Iterable[int], safety_ms: int) -> Iterator[Entry]:
    """Start brokers that have ended, several times."""
    for after_ms in RESTARTS_MS:
        for broker in brokers:
            yield started(safety_ms + after_ms, broker)


def started(at_ms: int, broker: int) -> Entry:
    """A start that ignores a running broker."""
    start = Start(broker, if_down=True)
    return {"at": _time(at_ms), start.name: parameters_of(start)}
