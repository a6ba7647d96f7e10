"""Reads a run's events in plain Python, for the tables of `reference`.

Owns a run as a value, groups, percentiles, and the history of state znodes; it shares no code with
the Spark tables.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from emulator.analysis.dataset import RunKey
from emulator.analysis.writer import setting_of
from emulator.trace import events as e
from emulator.trace.percentiles import nearest_rank
from emulator.trace.rows import RunBegan, RunEnded, ZkLogged
from emulator.trace.state import TraceState

STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
Row = dict[str, Any]
Place = tuple[str, int]


class Run(NamedTuple):
    key: RunKey
    began: RunBegan
    events: list[Any]
    ended: RunEnded

    def __repr__(self) -> str:
        """Hypothesis writes down what it calls a test with: short, or it warns."""
        return f"<{self.key.run}: {len(self.events)} events>"

    @property
    def group(self) -> tuple[str, ...]:
        return (*self.key[:3], setting_of(self.began))

    @property
    def traced(self) -> list[Any]:
        return [event for event in self.events if not isinstance(event, ZkLogged)]

    @property
    def end_t(self) -> int:
        return max([self.ended.t, *(event.t for event in self.traced)])

    @property
    def account(self) -> TraceState:
        state = TraceState(settings={s.name: s.value for s in self.began.settings})
        for event in self.traced:
            state(event)
        return state

    def of(self, *kinds: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(samples: Iterable[tuple[float, str]], *, weighted: bool = False) -> Row:
    """Percentiles of (value, run). `weighted`: a row of the table represents several samples."""
    every = list(samples)
    values = sorted(value for value, _ in every)
    parts = (50, 95, 99)
    return {
        **{
            f"p{part}": percentile(values, part / 100) if weighted else nearest_rank(values, part)
            for part in parts
        },
        "max": max(values),
        "worst_run": max(every)[1],
    }


def by_group(runs: Sequence[Run]) -> Iterator[tuple[Row, list[Run]]]:
    found: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        found[run.group].append(run)
    names = ("scenario", "profile", "propagation", "setting")
    for group, members in found.items():
        yield dict(zip(names, group, strict=True)), members


def worst(counts: dict[str, float]) -> str:
    return max((n, run) for run, n in counts.items())[1]


def place(event: Any) -> Place:
    return event.partition.topic, event.partition.partition


# -- what several need -----------------------------------------------------------------------------


def applied(event: e.ZkTransaction) -> list[Any]:
    ops = list(event.ops) or [event]
    return [] if any(op.op == "error" or op.code for op in ops) else ops


def state_ops(run: Run) -> Iterator[tuple[Any, Any, Place]]:
    for event in run.of(e.ZkTransaction):
        for op in applied(event):
            match = STATE.fullmatch(op.path or "")
            if match and op.op in ("create", "setData", "delete"):
                yield event, op, (match[1], int(match[2]))


class Told(NamedTuple):
    """Something that tells a state: version None: the znode is gone."""

    seq: int
    t: int
    generation: int
    version: int | None
    leader: int | None
    isr: tuple[int, ...]


def told_states(run: Run) -> dict[Place, list[Told]]:
    raw: list[tuple[Place, int, int, int | None, int | None, tuple[int, ...], bool]] = []
    for event, op, where in state_ops(run):
        if op.op == "delete":
            raw.append((where, event.seq, event.t, None, None, (), False))
            continue
        data = json.loads(op.data)
        version = 0 if op.op == "create" else op.version
        facts = version, data["leader"], tuple(data["isr"]), op.op == "create"
        raw.append((where, event.seq, event.t, *facts))
    raw += [
        (place(one), one.seq, one.t, one.zk_version, one.broker, one.isr, False)
        for one in run.of(e.IsrUpdated)
    ]
    raw += [
        (place(one), one.seq, one.t, one.zk_version, one.leader, one.isr, False)
        for one in run.of(e.ControllerCacheUpdated)
    ]
    found: dict[Place, list[Told]] = defaultdict(list)
    generations: Counter[Place] = Counter()
    for where, seq, t, version, leader, isr, created in sorted(raw, key=lambda one: one[1]):
        generations[where] += created
        found[where].append(Told(seq, t, generations[where], version, leader, isr))
    return found


def versions(told: list[Told]) -> list[Told]:
    """The first that tells each version, in order; gone ones after their generation."""
    first: dict[tuple[int, float], Told] = {}
    earliest: dict[tuple[int, float], int] = {}
    for one in told:
        key = (one.generation, float("inf") if one.version is None else one.version)
        first.setdefault(key, one)
        earliest[key] = min(earliest.get(key, one.t), one.t)
    return [first[key]._replace(t=earliest[key]) for key in sorted(first)]
