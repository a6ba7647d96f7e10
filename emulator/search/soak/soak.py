"""One soak: a drawn schedule on broker processes, real clients, and both verdicts.

The clients' history decides; the invariants of the trace are judged in addition, as in any other
run. A run with a failed client or an incomplete final read has no verdict.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from emulator.runs.broken import Broken
from emulator.runs.play import World
from emulator.runs.session import OnProgress, Played, Request, WrittenRun, play_run
from emulator.runs.summary import Progress
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Step
from emulator.search.soak.checker import Finding, HistoryVerdict, judge
from emulator.search.soak.clients import SoakClients
from emulator.search.soak.history import read_history
from emulator.search.soak.schedule import QUIET_S, fault_counts, stop_us

FINAL_MARGIN_US = 10_000_000
BEFORE_US = 15_000_000
"""Actions up to this long before the last correct observation may be the cause."""

Verdict = Literal["held", "not held", "unknown"]


class SoakResult(msgspec.Struct, frozen=True):
    """`problems`: why the history is incomplete. `violations`: of the trace's invariants, with the
    name of a known hazard of Kafka, if any."""

    verdict: Verdict
    history: HistoryVerdict
    problems: tuple[str, ...]
    violations: tuple[Broken, ...]
    faults: dict[str, int]
    events: int
    seconds: float
    run_directory: str


def soak(
    request: Request, java_class_path: str | None, on_progress: OnProgress | None = None
) -> SoakResult:
    """Play and judge. Raises like `play_run`."""
    with _Soak(request, java_class_path, on_progress) as running:
        played = play_run(request, running.on_progress, attach=running.attach, on_up=running.begin)
    return running.result(played)


class _Soak:
    def __init__(
        self, request: Request, java_class_path: str | None, on_progress: OnProgress | None
    ) -> None:
        self._scenario, self._java = request.scenario, java_class_path
        self._on_progress = on_progress
        self._clients: SoakClients | None = None
        self._are_done = False
        self._failures: list[str] = []

    def attach(self, run: object) -> None:
        assert isinstance(run, WrittenRun)
        self._clients = SoakClients(run.directory.path, self._java)

    def begin(self, world: World, up_us: int) -> None:
        from emulator.worlds.processes.world import ProcessWorld

        assert self._clients is not None
        assert isinstance(world, ProcessWorld)
        brokers = (world.site.address_of(broker) for broker in world.cluster.hosts)
        bootstrap = ",".join(f"{host}:{port}" for host, port in brokers)
        seconds = self._scenario.duration_us // 1_000_000
        end_us = self._scenario.duration_us - FINAL_MARGIN_US
        self._clients.start(
            bootstrap, world.clock.began_ns + up_us * 1000, stop_us(seconds), end_us
        )

    def on_progress(self, progress: Progress) -> None:
        assert self._clients is not None
        self._clients.advance()
        # The brokers end before the next call, and errors of clients after that are no failures.
        self._are_done = self._clients.are_done
        self._failures = self._clients.failures()
        if self._on_progress is not None:
            self._on_progress(progress)

    def __enter__(self) -> _Soak:
        return self

    def __exit__(self, *_: object) -> None:
        if self._clients is not None:
            self._clients.__exit__()

    def result(self, played: Played) -> SoakResult:
        assert self._clients is not None
        history = judge(read_history(self._clients.write_history()))
        problems = list(self._failures)
        if played.summary.interrupted:
            problems.append("the run was interrupted")
        elif not self._are_done:
            problems.append(f"clients had not read everything {QUIET_S} s after the last fault")
        problems += [f"nobody read {name} up to its end" for name in history.unread]
        if not history.acknowledged:
            problems.append("nothing was acknowledged")
        verdict: Verdict = "held"
        if history.findings:
            verdict = "not held"
        # A broker that is killed between a write and its event leaves a record that the trace
        # lacks. A violation of an invariant because of that needs inspection, so there is no
        # verdict.
        elif problems or any(not one.hazard for one in played.broken):
            verdict = "unknown"
        return SoakResult(
            verdict=verdict,
            history=history,
            problems=tuple(problems),
            violations=played.broken,
            faults=fault_counts(self._scenario.steps),
            events=len(played.events),
            seconds=played.summary.wall_ms / 1000,
            run_directory=str(played.directory),
        )


def faults_before(finding: Finding, scenario: LoadedScenario) -> list[Step]:
    """The actions during and shortly before the contradiction."""
    return [
        step
        for step in scenario.steps
        if step.fault and finding.from_us - BEFORE_US <= step.at_us <= finding.to_us
    ]
