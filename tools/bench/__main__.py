"""`make bench`: measures, and holds each figure against something measured in the same run.

Exit code 0: every ratio is what it should be; 1: one is not. With --json one object per figure.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from emulator.analysis.sweep.grid import BATCH_RUNS
from tools.bench import (
    against_kafka,
    hazards,
    hollow,
    importing,
    isr_updates,
    large_cluster,
    many_brokers,
    many_runs,
    searching,
    virtual_time,
)
from tools.bench.figures import Figure, show
from tools.bench.virtual_time import Load


class Measurement(NamedTuple):
    """`tiny` shows in seconds that it still runs; its ratios say nothing."""

    full: Callable[[], list[Figure]]
    tiny: Callable[[], list[Figure]]


TINY_EVENTS = 10_000

# The brokers come first: memory that was used before would be used again, and not be counted.
MEASUREMENTS = {
    "brokers": Measurement(many_brokers.figures, lambda: many_brokers.figures(5)),
    "updates": Measurement(
        lambda: [isr_updates.many_in_flight(n) for n in (10, 100)],
        lambda: [isr_updates.many_in_flight(4, updates=40, turns=1)],
    ),
    "shrink": Measurement(
        lambda: [isr_updates.shrink_pass()],
        lambda: [isr_updates.shrink_pass(partitions=5, turns=1)],
    ),
    "virtual": Measurement(
        virtual_time.figures,
        lambda: virtual_time.figures(Load(1, 32, "few"), Load(0.5, 32, "fewer"), turns=1),
    ),
    "large": Measurement(
        large_cluster.change_figures, lambda: large_cluster.change_figures(4, 12, 1)
    ),
    "growth": Measurement(
        large_cluster.growth_figures, lambda: large_cluster.growth_figures(4, (12,))
    ),
    "report": Measurement(
        many_runs.report_figures, lambda: many_runs.report_figures(TINY_EVENTS, turns=1)
    ),
    "tables": Measurement(
        many_runs.table_figures,
        # One whose query is compiled, and one whose query is interpreted.
        lambda: many_runs.table_figures(TINY_EVENTS, turns=1, only=("hw_lag", "isr_churn")),
    ),
    "sweep": Measurement(
        many_runs.sweep_figures, lambda: many_runs.sweep_figures(2 * BATCH_RUNS, "run: 1s")
    ),
    "skew": Measurement(many_runs.skew_figures, lambda: many_runs.skew_figures(10)),
    "millions": Measurement(
        many_runs.growth_figures,
        lambda: many_runs.growth_figures((TINY_EVENTS, 2 * TINY_EVENTS)),
    ),
    "fifty": Measurement(
        lambda: many_runs.growth_figures(many_runs.FAR),
        lambda: many_runs.growth_figures((TINY_EVENTS,)),
    ),
    "searching": Measurement(searching.pure_figures, lambda: searching.pure_figures(50)),
    "schedules": Measurement(searching.cluster_figures, lambda: searching.cluster_figures(20)),
    "import": Measurement(importing.import_figures, lambda: importing.import_figures(importing.MB)),
    "hazards": Measurement(hazards.hazard_figures, lambda: hazards.hazard_figures(most=1)),
    "hollow": Measurement(hollow.figures, hollow.tiny_figures),
    "scale": Measurement(against_kafka.figures, against_kafka.tiny_figures),
}
WHEN_NAMED = ("hollow", "scale")
"""Real time, and Maven."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASUREMENTS)}")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--tiny", action="store_true", help="as small as possible, not judged")
    options = parser.parse_args()
    if unknown := set(options.names) - set(MEASUREMENTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    busy = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {busy:.1f} before", file=sys.stderr)
    figures = []
    for name in options.names or [one for one in MEASUREMENTS if one not in WHEN_NAMED]:
        print(f"{name} ...", file=sys.stderr)
        figures += MEASUREMENTS[name].tiny() if options.tiny else MEASUREMENTS[name].full()
    if options.json:
        for one in figures:
            print(json.dumps(one.as_json()))
    else:
        show(figures)
    return 0 if options.tiny or all(one.ok for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
