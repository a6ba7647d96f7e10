"""`make bench`: measures, and holds each figure against something measured in the same run.

Exit code 0: every ratio is what it should be; 1: one is not. With --json one object per figure.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable

from tools.bench import (
    against_kafka,
    hazards,
    isr_updates,
    large_cluster,
    many_brokers,
    many_runs,
    searching,
    virtual_time,
)
from tools.bench.figures import Figure, show

# The brokers come first: memory that was used before would be used again, and not be counted.
MEASUREMENTS: dict[str, Callable[[], list[Figure]]] = {
    "brokers": many_brokers.figures,
    "updates": lambda: [isr_updates.many_in_flight(n) for n in (10, 100)],
    "shrink": lambda: [isr_updates.shrink_pass()],
    "virtual": virtual_time.figures,
    "large": large_cluster.change_figures,
    "growth": large_cluster.growth_figures,
    "report": many_runs.report_figures,
    "tables": many_runs.table_figures,
    "sweep": many_runs.sweep_figures,
    "skew": many_runs.skew_figures,
    "millions": many_runs.growth_figures,
    "fifty": lambda: many_runs.growth_figures(many_runs.FAR),
    "searching": searching.pure_figures,
    "schedules": searching.cluster_figures,
    "hazards": hazards.hazard_figures,
    "scale": against_kafka.figures,
}
WHEN_NAMED = ("scale",)
"""Real time, and Maven."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASUREMENTS)}")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(MEASUREMENTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    busy = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {busy:.1f} before", file=sys.stderr)
    figures = []
    for name in asked.names or [one for one in MEASUREMENTS if one not in WHEN_NAMED]:
        print(f"{name} ...", file=sys.stderr)
        figures += MEASUREMENTS[name]()
    if asked.json:
        for one in figures:
            print(json.dumps(one.as_json()))
    else:
        show(figures)
    return 0 if all(one.ok for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
