"""Shipped scenarios, played and judged in this process: what `isr run` does, without its files."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from emulator.kafka.profiles.base import profiles
from emulator.runs.play import Outcome, PlayOptions, play
from emulator.scenario import shipped
from emulator.scenario.expectations.base import Finding, Judge
from emulator.scenario.load import LoadedScenario, load
from emulator.trace.sink import Sink
from emulator.trace.state import TraceState
from emulator.trace.values import TopicPartition

NAMES = tuple(shipped.shipped())
RACE_FREE = tuple(name for name, path in shipped.shipped().items() if load(path).race_free)


class Played(NamedTuple):
    """A run and what was found."""

    outcome: Outcome
    observed: TraceState
    findings: dict[str, Finding]

    @property
    def isr_histories(self) -> dict[TopicPartition, list[tuple[int, ...]]]:
        """Every partition's ISRs, in order."""
        return {name: p.isr_history for name, p in sorted(self.observed.partitions.all.items())}


def scenario(name: str) -> LoadedScenario:
    return load(shipped.shipped()[name])


def without_faults(loaded: LoadedScenario) -> LoadedScenario:
    """The same, with nothing done to the cluster."""
    steps = tuple(step for step in loaded.steps if not step.fault)
    return msgspec.structs.replace(loaded, steps=steps)


def played(loaded: LoadedScenario, options: PlayOptions) -> Played:
    """Play it, and hold its expectations against it."""
    settings = {**profiles()[loaded.profile].defaults, **loaded.settings}
    observed = TraceState([boot.broker for boot in loaded.boots], settings)
    judge, sink = Judge(loaded.expectations, observed), Sink()
    sink.listen(observed)
    sink.listen(judge)
    outcome = play(loaded, options, sink)
    return Played(outcome, observed, {e.text: found for e, found in judge.findings()})
