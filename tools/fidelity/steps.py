"""How long the steps of brokers take, recorded and emulated: `python -m tools.fidelity.steps`.

A step leads from one ZooKeeper request of a lane to the next, for example from the list of topics
to the first read of a topic; or, where a broker is restarted, from its registration to its first
metadata, from there to its first LeaderAndIsr, its first role, and its return to an ISR. Plays
every recording under some random seeds and lists the steps whose durations differ most, so that a
range of `emulator.worlds.latency` can be fitted, or a place found at which our code takes no time
and Kafka's does. Durations are divided by the duration of the process's boot in units of 1.5 s,
which makes recordings of different machines comparable. Only the first uses of a step in a process
are cold, so they are listed separately.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from emulator.conformance import player
from emulator.conformance.criteria import EVER
from emulator.conformance.recording import Recording, read_recording
from emulator.conformance.requests import Request, Threads, sent_requests
from emulator.kafka.profiles.base import Profile
from emulator.search.guided.phases import boots_of
from emulator.trace.percentiles import nearest_rank
from emulator.worlds.latency import USUAL_BOOT_US
from tools.fidelity.seeds import parser_of, play_each, seeds_of

LONGEST_MS = 600
"""A longer gap is a wait for something, and no step."""
LATER = 3
"""The third and later uses are counted together."""
ENOUGH = 8
"""Fewer recorded durations show nothing."""
PERCENTILES = (10, 25, 50, 75, 90)

OF_A_RESTART = ("registered", "metadata", "LeaderAndIsr", "role", "expansion")
_FACTS = {
    "update_metadata": "metadata",
    "leader_and_isr": "LeaderAndIsr",
    "becomes_leader": "role",
    "becomes_follower": "role",
}


class Step(NamedTuple):
    lane: str
    request: str
    next_request: str
    use: int


def steps_of(
    run: Recording, real: Recording, running: Callable[[int], Profile]
) -> Iterator[tuple[Step, float]]:
    """The steps of a run of this recording's script, with durations in milliseconds per 1.5 s of
    boot. `running`: the profile that a broker is played with."""
    boots: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for boot in boots_of(real, running):
        if boot.launched_ms is not None:
            boots[boot.broker].append((boot.launched_ms, boot.boot_us))
    for broker, launches in boots.items():
        for launched_ms, boot_us in launches[1:]:
            for step, ms in restart_steps(run, broker, launched_ms):
                yield step, ms * USUAL_BOOT_US / boot_us
    lanes: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for at_ms, lane, request in sent_requests(run, EVER, Threads()):
        lanes[lane].append((at_ms, _pattern(request)))
    for lane, requests in lanes.items():
        _, broker, thread = lane.split(" ", 2)
        uses: dict[tuple[int, str, str], int] = defaultdict(int)
        for (before_ms, request), (at_ms, following) in pairwise(requests):
            # Requests of one kind that follow each other are a pipelined batch.
            if request == following or at_ms - before_ms > LONGEST_MS:
                continue
            durations_us = [us for launched, us in boots[int(broker)] if launched <= at_ms]
            key = (len(durations_us), request, following)
            uses[key] += 1
            step = Step(_numberless(thread), request, following, min(uses[key], LATER))
            boot_us = durations_us[-1] if durations_us else USUAL_BOOT_US
            yield step, (at_ms - before_ms) * USUAL_BOOT_US / boot_us


def restart_steps(run: Recording, broker: int, launched_ms: int) -> Iterator[tuple[Step, int]]:
    """The steps of one restart, in milliseconds. An expansion is that of a leader that writes ISRs
    itself."""
    first: dict[str, int] = {}
    for fact in run.events:
        kind, at_ms = fact["kind"], fact["t"]
        name = _FACTS.get(kind, "") if fact.get("broker") == broker else ""
        if kind == "stimulus" and fact["do"] == "registered" and fact["broker"] == broker:
            name = "registered"
        elif kind == "expand" and broker in {*fact["to_isr"]} - {*fact["from_isr"]}:
            name = "expansion"
        is_next = len(first) < len(OF_A_RESTART) and name == OF_A_RESTART[len(first)]
        if is_next and at_ms >= launched_ms:
            first[name] = at_ms
    for (before, before_ms), (after, at_ms) in pairwise(first.items()):
        if at_ms - before_ms <= LONGEST_MS:
            yield Step("restart", before, after, 1), at_ms - before_ms


def _numberless(text: str) -> str:
    return re.sub(r"\d+", "N", re.sub(r"/topics/[^/]+", "/topics/T", text))


def _pattern(request: Request) -> str:
    path = request.path or (request.ops[-1].path if request.ops else None) or ""
    return f"{request.op} {_numberless(path)}{' W' if request.watch else ''}"


def difference(recorded: Sequence[float], emulated: Sequence[float]) -> float:
    """The statistic of Kolmogorov and Smirnov, relative to its standard error."""
    a, b = sorted(recorded), sorted(emulated)
    most = max(abs(bisect_right(a, x) / len(a) - bisect_right(b, x) / len(b)) for x in {*a, *b})
    return float(most / (1 / len(a) + 1 / len(b)) ** 0.5)


def play(folder: Path, seeds: int) -> tuple[list[tuple[Step, float]], list[tuple[Step, float]]]:
    """(recorded, emulated) steps."""
    real = read_recording(folder)
    script = player.script_of(real)
    running = script.scenario.running
    emulated = [
        step
        for seed in seeds_of(folder, seeds)
        for step in steps_of(player.simulate(script, seed), real, running)
    ]
    return list(steps_of(real, real, running)), emulated


def main() -> None:
    parser = parser_of(__doc__, seeds=3)
    parser.add_argument("--most", type=int, default=40, help="steps listed (%(default)s)")
    chosen = parser.parse_args()

    recorded: dict[Step, list[float]] = defaultdict(list)
    emulated: dict[Step, list[float]] = defaultdict(list)
    for real, ours in play_each(play, chosen):
        for durations, steps in ((recorded, real), (emulated, ours)):
            for step, ms in steps:
                durations[step].append(ms)
    compared = [s for s in recorded if len(recorded[s]) >= ENOUGH and len(emulated[s]) >= ENOUGH]
    compared.sort(key=lambda s: difference(recorded[s], emulated[s]), reverse=True)
    print(f"ms per 1.5 s of boot; percentiles {', '.join(map(str, PERCENTILES))}")
    for step in compared[: chosen.most]:
        print(f"{step.lane}: {step.request} -> {step.next_request}, use {step.use}")
        for name, durations in (("recorded", recorded[step]), ("emulated", emulated[step])):
            shown = (f"{nearest_rank(sorted(durations), p):6.0f}" for p in PERCENTILES)
            print(f"    {name} {len(durations):5} times {''.join(shown)}")


if __name__ == "__main__":
    main()
