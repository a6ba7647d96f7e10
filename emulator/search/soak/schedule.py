"""Draws a soak from a seed: a cluster whose topic must not lose records, and faults, as a scenario.

Situations of several faults alternate with single faults: those with a `soak_weight`, one after the
other or overlapping. They end `QUIET_S` before the run does: then everything is healed, clients
end, and everything is read. A seed always gives the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from emulator.kafka.profiles.base import Propagation, profiles
from emulator.kernel.rng import Stream, mix
from emulator.scenario.actions.base import Action, actions
from emulator.scenario.actions.disk import DiskFault
from emulator.scenario.actions.drawing import Draw
from emulator.scenario.actions.life import Crash, EndsProcess, Kill, Start, Terminate
from emulator.scenario.schema import Step
from emulator.search.fuzz.worlds import parameters_of, restarts, written
from emulator.search.soak.situations import ROLL_EVERY_MS, Situation, situations_of
from emulator.worlds.live import EMBEDDED
from emulator.worlds.targets import capabilities_of

NAME, TOPIC, PARTITIONS = "soak", "soak", 4
BROKERS = (1, 2, 3)
FIRST_FAULT_MS = 8_000
QUIET_S = 120
"""The time from the last fault to the end, enough for sessions, a producer's delivery timeout, and
a complete scan."""

LEAST_S = QUIET_S + 30
GAP_MS, LASTS_MS = (1_000, 14_000), (1_500, 20_000)
START_AGAIN_MS = (0, 9_000, 18_000)
"""A start fails while the old session lives or ZooKeeper is down, so it is repeated."""

SETTLES_MS = 10_000
"""The time from the last fault to a situation: all brokers are to be in sync."""

BETWEEN_SITUATIONS = 3
"""Faults that are drawn one by one."""

SETTINGS = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
    "zookeeper.session.timeout.ms": "4000",
    "replica.lag.time.max.ms": "4000",
    "controller.socket.timeout.ms": "8000",
    "replica.socket.timeout.ms": "8000",
    "leader.imbalance.check.interval.seconds": "20",
}
SYNCED = {"log.flush.interval.messages": "1"}
Entry = dict[str, object]


def soak_faults() -> dict[str, type[Action]]:
    """What is drawn, by name."""
    return {name: kind for name, kind in sorted(actions().items()) if kind.soak_weight}


def supported_faults(target: str) -> dict[str, type[Action]]:
    """What can be done to the brokers of a target."""
    capabilities, _ = capabilities_of(target, EMBEDDED, {})
    draw = Draw(Stream(0), BROKERS, {}, {})
    samples = {name: kind.drawn_for_soak(draw) for name, kind in soak_faults().items()}
    return {
        name: soak_faults()[name]
        for name, action in samples.items()
        if action is not None and not capabilities.refusal(action)
    }


def draw_schedule(
    seed: int,
    seconds: int,
    profile: str,
    upgrade: str = "",
    kinds: Collection[str] | None = None,
    *,
    machines_crash: bool = False,
) -> str:
    """The scenario of a seed, as YAML. `upgrade`: brokers go over to this version, one after the
    other. `kinds`: these faults alone. `machines_crash`: what kills a broker takes all that it has
    not synced, and brokers sync each record."""
    draw = Draw(Stream(mix(seed ^ 0x534F414B)), BROKERS, {}, {})
    replicas = [list(draw.replicas(3)) for _ in range(PARTITIONS)]
    healed_ms = (seconds - QUIET_S) * 1000
    world: Entry = {
        "about": f"Faults for real clients, drawn from seed {seed}.",
        "profile": profile,
        "cluster": {
            "brokers": list(BROKERS),
            "storage": "files",
            "config": SETTINGS | (SYNCED if machines_crash else {}),
        },
        "topics": {TOPIC: {"partitions": replicas}},
        "faults": [
            *_faults(
                draw,
                healed_ms,
                soak_faults() if kinds is None else kinds,
                machines_crash=machines_crash,
            ),
            *_upgrades(profile, upgrade, healed_ms),
            *restarts(BROKERS, healed_ms),
        ],
        "run": f"{seconds}s",
        # A history is judged independently of the machine's delays.
        "kernel_late": "1h",
    }
    return written(world)


def stop_us(seconds: int) -> int:
    """When clients end: some time after the healing, so that they still observe the healed
    cluster."""
    return (seconds - QUIET_S + 15) * 1_000_000


def fault_counts(steps: Iterable[Step]) -> dict[str, int]:
    """How often each fault was drawn, without the actions that undo faults."""
    applied = (one.action for one in steps if one.fault)
    # What heals a delay is a delay of nothing, which heals itself.
    drawn: tuple[type[Action], ...] = (*soak_faults().values(), Crash)
    names = (one.name for one in applied if isinstance(one, drawn) and one.healed() != one)
    return dict(Counter(names).most_common())


def _faults(
    draw: Draw, healed_ms: int, names: Collection[str], *, machines_crash: bool
) -> Iterator[Entry]:
    kinds = [kind for name, kind in soak_faults().items() if name in names]
    often = [kind for kind in kinds for _ in range(kind.soak_weight)]
    busy: dict[tuple[object, ...], int] = {}
    situations: list[Situation] = []
    at_ms = FIRST_FAULT_MS

    def entries(action: Action, after_ms: int, lasts_ms: int) -> Iterator[Entry]:
        if isinstance(action, Kill) and machines_crash:
            action = Crash(action.broker, "unflushed")
        return _entries(action, at_ms + after_ms, lasts_ms, healed_ms, busy)

    while at_ms < healed_ms:
        # All situations before one comes again: chance would leave one out of a short soak.
        situations = situations or draw.stream.shuffled(situations_of(kinds))
        if situations:
            at_ms = max([at_ms, *(end_ms + SETTLES_MS for end_ms in busy.values())])
            first, second, third = draw.stream.shuffled(list(BROKERS))
            moments = situations.pop().moments((first, second, third), draw.stream)
            for one in moments:
                yield from entries(one.action, one.after_ms, one.lasts_ms)
            at_ms += max(one.after_ms + one.lasts_ms for one in moments)
        for _ in range(BETWEEN_SITUATIONS):
            at_ms += draw.between(*GAP_MS)
            action = draw.one_of(often).drawn_for_soak(draw)
            if action is not None:
                yield from entries(action, 0, draw.spread(*LASTS_MS))
        at_ms += draw.between(*GAP_MS)


def _entries(
    action: Action, at_ms: int, lasts_ms: int, healed_ms: int, busy: dict[tuple[object, ...], int]
) -> Iterator[Entry]:
    """A fault and the action that undoes it; nothing while another action holds the same
    resource, or in the quiet end."""
    if at_ms >= healed_ms or busy.get(action.holds(), 0) > at_ms:
        return
    entry: Entry = {"at": f"{at_ms}ms", action.name: parameters_of(action)}
    if action.healed() is None:
        yield entry
        return
    end_ms = min(at_ms + lasts_ms, healed_ms)
    busy[action.holds()] = end_ms + 1
    yield entry | {"for": f"{end_ms - at_ms}ms"}
    broker = getattr(action, "broker", None)
    if broker is not None and isinstance(action, EndsProcess | DiskFault):
        yield from _starts(broker, end_ms + 1, healed_ms)


def _starts(broker: int, at_ms: int, healed_ms: int, start: Start | None = None) -> Iterator[Entry]:
    start = start or Start(broker, if_down=True)
    for after_ms in START_AGAIN_MS:
        if at_ms + after_ms < healed_ms:
            yield {"at": f"{at_ms + after_ms}ms", start.name: parameters_of(start)}


def _rolling_restart(
    at_ms: int, healed_ms: int, profile: str = "", propagation: Propagation | None = None
) -> Iterator[Entry]:
    """One broker after the other shuts down in an orderly way and starts, with another version."""
    for broker in BROKERS:
        stop = Terminate(broker)
        if at_ms < healed_ms:
            yield {"at": f"{at_ms}ms", stop.name: parameters_of(stop)}
            start = Start(broker, if_down=True, profile=profile, propagation=propagation or "")
            yield from _starts(broker, at_ms + 3_000, healed_ms, start)
        at_ms += ROLL_EVERY_MS


def _upgrades(profile: str, upgrade: str, healed_ms: int) -> Iterator[Entry]:
    """First the code, then the propagation of ISR changes (inter.broker.protocol.version)."""
    if not upgrade:
        return
    before, after = profiles()[profile].propagation, profiles()[upgrade].propagation
    yield from _rolling_restart(healed_ms // 3, healed_ms, upgrade, before)
    if after != before:
        yield from _rolling_restart(healed_ms * 2 // 3, healed_ms, upgrade, after)
