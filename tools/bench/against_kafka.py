"""Scale, real against emulated: the same scenario on real Kafka 2.6.3 and in our live world.

600 partitions are created, and lose a follower at once; a controller dies that had 3,000. Both run
on this machine, one after the other, each on a ZooKeeper server of its own behind taps. What is
compared: ZooKeeper requests by kind, how long each leg takes, as a ratio. Real time and Maven.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.view.stored import open_run
from tools.bench.figures import Figure

KAFKA = "2.6.3"
STORM, MANY = 600, 3000
_ISR = [sys.executable, "-c", "from emulator.cli import main; main()"]
_CONFIG = """\
profile: "2.6"
cluster:
  brokers: 3
  first: 3
  config:
    replica.lag.time.max.ms: 10000
    zookeeper.session.timeout.ms: {session}
    auto.leader.rebalance.enable: false
"""
_STORM = """\
about: {partitions} partitions are created, and lose a follower at once
{config}
faults:
  - {{at: 2s, create_topic: {{topic: storm, assignment: {assignment}}}}}
  - {{at: 40s, pause: {{broker: 2}}, for: 25s}}
  - {{at: 41s, send: {{topic: storm, records: 1, acks: 1}}}}
run: 75s
expect: []
"""
_MANY = """\
about: the controller of {partitions} partitions dies
{config}
faults:
  - {{at: 2s, create_topic: {{topic: many, assignment: {assignment}}}}}
  - {{at: 100s, kill: {{broker: 3}}}}
run: 150s
expect: []
"""


class Seen(msgspec.Struct, frozen=True):
    """One phase of one run: ZooKeeper requests by kind, and milliseconds of each leg."""

    requests: Counter[str]
    legs: dict[str, float]


Phases = dict[str, Seen]


def figures() -> list[Figure]:
    """Of each leg: what real Kafka took, in ours (1: as long)."""
    return _figures(STORM, MANY, ["record", "--kafka", KAFKA], ["run", "--seed", "1"])


def tiny_figures() -> list[Figure]:
    """The same without Maven and without waiting: virtual time under two seeds."""
    virtual = ["run", "--zookeeper", "simulated", "--seed"]
    return _figures(6, 6, [*virtual, "1"], [*virtual, "2"])


def _figures(partitions: int, many: int, real: list[str], ours: list[str]) -> list[Figure]:
    scenarios = (
        ("storm", storm_text(partitions), partial(storm, partitions=partitions)),
        ("many", many_partitions_text(many), partial(fail_over, partitions=many)),
    )
    made: list[Figure] = []
    with TemporaryDirectory(prefix="isr-scale-") as scratch:
        for name, text, read in scenarios:
            file = Path(scratch) / f"{name}.yaml"
            file.write_text(text)
            sides: list[Phases] = []
            for command in (real, ours):
                out = Path(scratch) / f"{name}-{len(sides)}"
                words = [command[0], str(file), *command[1:], "--out", str(out)]
                sides.append(_played(words, out, read))
            for phase in sides[0]:
                made += side_by_side(phase, *sides, "ours live, 3 brokers")
    return made


def _played(words: list[str], out: Path, read: Callable[[Sequence[AnyEvent]], Phases]) -> Phases:
    print(f"  isr {words[0]} ...", file=sys.stderr, flush=True)
    done = subprocess.run([*_ISR, *words, "--quiet"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 2), done.stderr + done.stdout
    return read(open_run((out / "latest").resolve()).events)


def storm_text(partitions: int) -> str:
    assignment = [[1, 2, 3]] * partitions
    return _STORM.format(partitions=partitions, config=_of(40_000), assignment=assignment)


def many_partitions_text(partitions: int) -> str:
    assignment = [[[1, 2], [2, 3], [3, 1]][n % 3] for n in range(partitions)]
    return _MANY.format(partitions=partitions, config=_of(6_000), assignment=assignment)


def _of(session_ms: int) -> str:
    """The cluster: who stands still keeps its session, who dies loses it soon."""
    return _CONFIG.format(session=session_ms)


# -- what a trace shows ----------------------------------------------------------------------------


def storm(events: Sequence[AnyEvent], partitions: int) -> Phases:
    created, paused = _action(events, "create_topic"), _action(events, "pause")
    resumed = _action(events, "resume")
    of_creation = _between(events, created, paused)
    of_shrink = _between(events, paused, resumed)
    states = [it.t for it in of_creation if isinstance(it, e.ZkTransaction) and _states(it)]
    roles = _times(of_creation, e.BecomesLeader, e.BecomesFollower)
    shrinks = [it.t for it in of_shrink if isinstance(it, e.ZkTransaction) and _states(it)]
    decided = _times(of_shrink, e.IsrUpdateStarted)
    creation = {
        "asked to first state": _ms(created, states[0]),
        "first to last state": _ms(states[0], states[-1]),
        "last state to last replica in its role": _ms(states[-1], roles[-1]),
    }
    shrink = {
        "paused to first decision": _ms(paused, decided[0]),
        "first to last write": _ms(shrinks[0], shrinks[-1]),
    }
    return {
        f"creation of {partitions} partitions": Seen(_requests(of_creation), creation),
        f"shrink of {partitions} partitions": Seen(_requests(of_shrink), shrink),
    }


def fail_over(events: Sequence[AnyEvent], partitions: int) -> Phases:
    killed = _action(events, "kill")
    after = _between(events, killed, 1 << 60)
    gone = next(it.t for it in after if isinstance(it, e.ZkTransaction) and it.op == "closeSession")
    elected = _times(after, e.ControllerElected)[0]
    states = [it.t for it in after if isinstance(it, e.ZkTransaction) and _states(it)]
    updates = _times(after, e.MetadataCacheUpdated)
    legs = {
        "killed to session ended": _ms(killed, gone),
        "session ended to elected": _ms(gone, elected),
        "elected to first state": _ms(elected, states[0]),
        "first to last state": _ms(states[0], states[-1]),
        "last state to last metadata": _ms(states[-1], updates[-1]),
    }
    winner = next(it.broker for it in after if isinstance(it, e.ControllerElected))
    mine = [it for it in after if it.broker == winner]
    return {f"fail-over with {partitions} partitions": Seen(_requests(mine), legs)}


def _action(events: Sequence[AnyEvent], do: str) -> int:
    return next(it.t for it in events if isinstance(it, e.ActionApplied) and it.do == do)


def _between(events: Sequence[AnyEvent], first_us: int, end_us: int) -> list[AnyEvent]:
    return [it for it in events if first_us <= it.t < end_us]


def _times(events: Sequence[AnyEvent], *kinds: type) -> list[int]:
    return [it.t for it in events if isinstance(it, kinds)]


def _states(event: e.ZkTransaction) -> bool:
    """It writes a partition's state."""
    return any(
        (op.path or "").endswith("/state") and op.op != "check" for op in event.ops or [event]
    )


_NUMBER = re.compile(r"/\d+(?=/|$)|\d{10}")


def _requests(events: Sequence[AnyEvent]) -> Counter[str]:
    """By kind: operation and path, numbers masked; of a multi what it does, not how often."""
    counts: Counter[str] = Counter()
    for event in events:
        if not isinstance(event, e.ZkRequest):
            continue
        ops = [f"{op.op} {masked(op.path)}" for op in event.ops] or [masked(event.path)]
        counts[f"{event.op} {', '.join(dict.fromkeys(ops))}"] += 1
    return counts


def masked(path: str | None) -> str:
    return _NUMBER.sub("/N", path or "")


def _ms(first_us: int, last_us: int) -> float:
    return (last_us - first_us) / 1000


# -- side by side ----------------------------------------------------------------------------------


def side_by_side(phase: str, real: Phases, ours: Phases, scope: str) -> Iterator[Figure]:
    theirs, here = real[phase], ours[phase]
    differs = {kind: (theirs.requests[kind], here.requests[kind])
               for kind in theirs.requests | here.requests
               if theirs.requests[kind] != here.requests[kind]}  # fmt: skip
    shown = "; ".join(f"{kind}: {a:,} and {b:,}" for kind, (a, b) in sorted(differs.items()))
    yield Figure(
        what=f"{phase}: kinds of requests of which there are not equally many",
        value=float(len(differs)),
        unit="kinds",
        scope=f"{here.requests.total():,} requests of {len(here.requests)} kinds; Kafka {KAFKA}"
        f" {theirs.requests.total():,} of {len(theirs.requests)}{': ' if shown else ''}{shown}",
        most=0.0,
    )
    for segment, ms in theirs.legs.items():
        yield Figure(
            what=f"{phase}: {segment}",
            value=here.legs[segment],
            unit="ms",
            scope=f"{scope}; Kafka {KAFKA} on the same machine just before",
            reference="real Kafka",
            of=ms,
        )
