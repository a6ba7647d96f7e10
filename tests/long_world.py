"""A long run for real processes: random faults, one after the other, for any duration.

Three brokers and several ZooKeeper servers, every topic on three brokers, acks=all, at least two
in-sync replicas, no unclean elections: only a known hazard of Kafka may lose an acknowledged
record. Faults are those that the target supports, that can be undone, and that lose no record by
themselves (no disk is lost). A supervisor checks every 15 s and restarts brokers that ended by
themselves: a broker that starts while its old session lives, or without ZooKeeper, gives up. At the
end all is healed and the cluster must converge. The same seed gives the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.kernel.rng import Stream, mix
from emulator.scenario.actions.base import Action, actions, names_of
from emulator.scenario.actions.drawing import Assignment, Draw
from emulator.scenario.actions.life import Kill
from emulator.scenario.actions.pause import Pause
from emulator.scenario.actions.stop_zookeeper import StopZookeeper
from emulator.search.fuzz.worlds import (
    FIRST_FAULT_MS,
    SETTLED,
    Entry,
    parameters_of,
    restarts,
    started,
    written,
)

BROKERS = (1, 2, 3)
TOPICS: dict[str, Assignment] = {
    "t0": [(1, 2, 3), (2, 3, 1), (3, 1, 2)],
    "t1": [(2, 1, 3), (3, 2, 1)],
}
SETTINGS = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "replica.lag.time.max.ms": "4000",
    "zookeeper.session.timeout.ms": "6000",
    "request.timeout.ms": "10000",
    "controller.socket.timeout.ms": "10000",
    "replica.socket.timeout.ms": "10000",
    "leader.imbalance.check.interval.seconds": "30",
}
SETTLE_MS = 80_000
"""How long the healed cluster has; brokers that ended are started again in its first half."""

KERNEL_LATE_MS = 60_000
"""Only clients and faults are late, not brokers, so nothing here depends on it."""

BETWEEN_MS = (3_000, 12_000)
LOOKS_MS = 15_000
LASTS_MS = (500, 25_000)

Suitable = Callable[[Action], bool]


def draw_long_world(
    seed: int, seconds: int, servers: int, suitable: Suitable, guards: tuple[str, ...] = ()
) -> str:
    """The scenario of a seed, as YAML: `seconds` with faults, and then time to heal."""
    draw = Draw(Stream(mix(seed ^ 0x534F414B)), BROKERS, dict(TOPICS), SETTINGS)
    until_ms = FIRST_FAULT_MS + seconds * 1000
    world: Entry = {
        "about": f"{seconds} s of random faults, drawn from seed {seed}.",
        "cluster": {
            "brokers": list(BROKERS),
            "first": draw.broker,
            "config": SETTINGS,
            "zookeeper": {"servers": servers},
        },
        "topics": {
            name: {"partitions": [list(replicas) for replicas in assignment]}
            for name, assignment in TOPICS.items()
        },
        "workload": [
            {"produce": name, "rate": 2, "acks": "all", "from": "2500ms", "until": f"{until_ms}ms"}
            for name in TOPICS
        ],
        "faults": [*_faults(draw, until_ms, servers, suitable), *restarts(BROKERS, until_ms)],
        "kernel_late": f"{KERNEL_LATE_MS}ms",
        "run": f"{until_ms + SETTLE_MS}ms",
        "expect": [SETTLED],
    }
    if guards:
        world["guards"] = dict.fromkeys(guards, "on")
    return written(world)


def _faults(draw: Draw, until_ms: int, servers: int, suitable: Suitable) -> Iterator[Entry]:
    held: dict[tuple[object, ...], int] = {}
    at_ms = looks_ms = FIRST_FAULT_MS
    while (at_ms := at_ms + draw.between(*BETWEEN_MS)) < until_ms:
        if at_ms >= looks_ms:
            looks_ms = at_ms + LOOKS_MS
            alone = [broker for broker in BROKERS if held.get(Kill(broker).holds(), 0) <= at_ms]
            yield from (started(at_ms, broker) for broker in alone)
        action = _drawn(draw, servers, suitable)
        if held.get(action.holds(), 0) > at_ms:
            continue
        end_ms = min(at_ms + draw.spread(*LASTS_MS), until_ms)
        held[action.holds()] = end_ms + 1
        yield {
            "at": f"{at_ms}ms",
            action.name: parameters_of(action),
            "for": f"{end_ms - at_ms}ms",
        }


def _drawn(draw: Draw, servers: int, suitable: Suitable) -> Action:
    """One that heals; every fourth strikes one server of several."""
    if servers > 1 and draw.chance(25):
        server = draw.one_of(names_of(servers)[1:])
        return draw.one_of((Pause(server=server), StopZookeeper(server)))
    often = [kind for _, kind in sorted(actions().items()) for _ in range(kind.weight)]
    while True:
        action = draw.one_of(often).drawn(draw)
        if action is not None and action.healed() is not None and suitable(action):
            return action
