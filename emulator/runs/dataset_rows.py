"""A run's first and last row in a data set: its inputs and its result.

Owns how a scenario, a seed and a summary become these rows, for the commands that write data sets
(`isr run`, `isr fuzz`, `isr sweep`). It must not know files or Parquet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from emulator.runs.broken import Broken
from emulator.runs.summary import VERDICTS, Summary
from emulator.scenario.schema import Scenario
from emulator.scenario.settings import overrides
from emulator.scenario.version import switch_words
from emulator.trace.rows import BrokenRow, Figure, RunBegan, RunEnded, Setting

FAILED = "failed"
"""The verdict of a run that ended with an exception: an internal error, not a failure of the
cluster.
"""


def propagation_of(scenario: Scenario) -> str:
    """How ISR changes reach the controller in this cluster: `zk` or `rpc`."""
    return scenario.running().propagation


def began(
    scenario: Scenario,
    seed: int,
    *,
    zookeeper: str = "simulated",
    sets: Sequence[str] = (),
    replay: str = "",
    traced: bool = True,
) -> RunBegan:
    """The first row. `sets`, each KEY=VALUE, are the settings chosen for this run, including
    switched guards."""
    every = {**scenario.running().values, **scenario.settings}
    chosen = dict(overrides(tuple(sets)))
    chosen |= {f"guard:{name}": word for name, word in switch_words(scenario.guards).items()}
    return RunBegan(
        *(-1, 0, 0, "", -1),
        seed=f"{seed:#x}",
        zookeeper=zookeeper,
        settings=tuple(Setting(name, str(value)) for name, value in sorted(every.items())),
        chosen=tuple(Setting(name, value) for name, value in sorted(chosen.items())),
        replay=replay,
        traced=traced,
    )


def ended(summary: Summary) -> RunEnded:
    """The last row, from the run's summary, without figures that depend on the machine."""
    t_us = round(summary.virtual_ms * 1000)
    return RunEnded(
        *(-1, t_us, 0, "", -1),
        verdict=summary.verdict,
        interrupted=summary.interrupted,
        figures=tuple(_figures(msgspec.to_builtins(summary))),
        violations=tuple(map(_row, summary.violations)),
    )


def ended_with(broken: Sequence[Broken], t_us: int, *, cut_short: bool = False) -> RunEnded:
    """The last row of a run without a summary; `cut_short`: it ended with an exception."""
    verdict = FAILED if cut_short else VERDICTS[not broken]
    violations = tuple(map(_row, broken))
    return RunEnded(*(-1, t_us, 0, "", -1), verdict, False, (), violations)


def _row(one: Broken) -> BrokenRow:
    topic, number = one.topic_partition or (None, None)
    return BrokenRow(one.invariant, one.text, one.hazard, topic, number, one.broker)


_MACHINE = frozenset({"wall_ms", "kernel_late_ms_max", "kernel_was_late", "time_scale", "seed"})


def _figures(summary: Mapping[str, object], prefix: str = "") -> list[Figure]:
    """Every number of the summary; nested ones are joined: `propagation_ms_p50`."""
    figures: list[Figure] = []
    for name, value in summary.items():
        if name in _MACHINE or name in ("metrics", "refused_by_error", "settings"):
            continue
        if isinstance(value, dict):
            figures += _figures(value, f"{name}_")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            figures.append(Figure(prefix + name, float(value)))
    return figures
