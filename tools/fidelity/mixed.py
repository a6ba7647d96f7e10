"""`make fidelity-mixed`: real Kafka and emulated brokers in one cluster, judged by all-real runs.

Each of six stories has a controller, a leader and followers. Each role is played by real Kafka or
by ours: eight mixes. The all-real mix runs several times; a mixed run is held to those as the judge
holds any run to a recording, and the sentences that real Kafka logged as WARN or ERROR are held to
the sentences of the all-real runs. All of it in real time, about 50 s a run. DIR keeps what was
recorded; what it has already is not run again.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from emulator.conformance.compare import Reference, Verdict, conclude
from emulator.conformance.criteria import CRITERIA
from emulator.conformance.export import export
from emulator.conformance.recording import Fact, read_recording, write_recording
from emulator.kafka.profiles.base import Propagation, profile_of, profiles
from emulator.runs.run_directory import TRACE
from emulator.scenario import shipped
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.base import actions
from emulator.scenario.actions.life import EndsProcess
from emulator.scenario.load import LoadedScenario, load
from emulator.scenario.units import duration_us
from emulator.trace.events import ActionApplied, BrokerStarting
from emulator.trace.reader import read_events
from tools.fidelity.page import write_page
from tools.fidelity.results import (
    MIXES,
    Mix,
    MixedResult,
    difference_of,
    read_rows,
    write_rows,
)

ROOT = Path(__file__).resolve().parents[2]
ISR = (sys.executable, "-c", "from emulator.cli import main; main()")
STORIES = (
    "shrink-and-expand",
    "leader-crash",
    "controller-failover",
    "leader-loses-zookeeper",
    "controlled-shutdown",
    "reassignment",
)
KAFKA = "2.6.3"
ALL_REAL_RUNS = 4
BOOT_US = 15_000_000
"""A broker that starts again in a story takes this much longer than the story allows for: a JVM on
two busy cores."""

LATE, UP_WITHIN_US = "500ms", 12_000_000
"""A run whose faults came this late, or whose cluster took this long to come up, played another
story on an overloaded machine. It is played again."""
UNKNOWN = 2
"""The exit code of a run that was late."""
PLAYS = 3

_RESTARTS = {name for name, kind in actions().items() if issubclass(kind, EndsProcess)}
"""Faults whose end (`for`) is a start."""

_WARNINGS = "warnings.json"
_LOGGED = re.compile(r"^\[([^]]+)\] (?:WARN|ERROR|FATAL) (.*)$")
_VARIABLE = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)*|/[\w./-]+")
_REQUEST = re.compile(r"\(type\W.*\)(?= to broker| \(kafka\.)")
_LIST = re.compile(r"N(?:, N)+")


ALL_REAL = Mix(True, True, True)


class MixedVersion(NamedTuple):
    """A version of Kafka, and how leaders there propagate ISR changes: with an older
    inter.broker.protocol.version, a newer Kafka writes them to ZooKeeper."""

    kafka: str
    propagation: Propagation

    def __str__(self) -> str:
        return f"{self.kafka}-{self.propagation}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity.mixed", description=__doc__)
    parser.add_argument("--recorded", type=Path, metavar="DIR", default=ROOT / "runs" / "mixed")
    parser.add_argument("--kafka", default=KAFKA)
    parser.add_argument(
        "--propagation", choices=("zk", "rpc"), help="of ISR changes; else the version's default"
    )
    parser.add_argument("--only", nargs="*", default=STORIES, help="stories by name")
    parser.add_argument(
        "--mixes", nargs="*", help="such as RRO: controller, leader real, follower ours"
    )
    parser.add_argument("--all-real", type=int, default=ALL_REAL_RUNS, help="all-real runs of each")
    parser.add_argument("--judge", action="store_true", help="judge what DIR has, and run nothing")
    parser.add_argument("--through", default="", metavar="COMMAND", help="each run by this command")
    options = parser.parse_args()
    chosen = [mix for mix in MIXES if options.mixes is None or str(mix) in options.mixes]
    version = MixedVersion(
        options.kafka, options.propagation or profiles()[profile_of(options.kafka)].propagation
    )
    recorded = options.recorded / str(version)
    if not options.judge:
        # Mixes in the outer loop: an interrupted measurement has some mixes of every story.
        for mix in chosen:
            for story in options.only:
                for number in range(options.all_real if mix == ALL_REAL else 1):
                    folder = recorded / story / str(mix) / str(number + 1)
                    if not (folder / _WARNINGS).exists():
                        record(story, mix, version, folder, shlex.split(options.through))
    known = {row.place: row for row in read_rows("mixed", MixedResult)}
    for story in options.only:
        for row in judged(recorded / story, version):
            known[row.place] = row
    write_rows("mixed", [row for _, row in sorted(known.items())])
    write_page()
    return 0


# -- a run -----------------------------------------------------------------------------------------


def scenario_text(story: str, mix: Mix, version: MixedVersion) -> str:
    """The shipped scenario of that version with hosts, and with time for processes that start
    again."""
    loaded = load(shipped.find(story))
    sections = yaml.safe_load(shipped.shipped()[story].read_text())
    hosts = {
        b: f"kafka {version.kafka}" for b, role in roles_of(loaded).items() if getattr(mix, role)
    }
    # A fault that follows a start waits for it: the broker is in its ISRs again, as in the story.
    before_us = starts_us = 0
    for fault in sorted(sections["faults"], key=lambda fault: duration_us(str(fault["at"]))):
        before_us = starts_us
        fault["at"] = _later(fault["at"], before_us)
        starts_us += BOOT_US * bool(_RESTARTS & fault.keys())
    for work in sections["workload"]:
        work["until"] = _later(work["until"], before_us)
    sections |= {
        "profile": profile_of(version.kafka),
        "propagation": version.propagation,
        "hosts": hosts,
        "run": f"{(loaded.duration_us + starts_us) // 1000}ms",
        "kernel_late": LATE,
        "expect": [],
    }
    return yaml.safe_dump(sections, sort_keys=False)


def _later(time: object, by_us: int) -> str:
    return f"{(duration_us(str(time)) + by_us) // 1000}ms"


def roles_of(scenario: LoadedScenario) -> dict[int, str]:
    """The controller registers first; the leader is that of the first partition."""
    controller = scenario.boots[0].broker
    created = next(s.action for s in scenario.steps if isinstance(s.action, CreateTopic))
    leader = created.assignment[0][0]
    names = {controller: "controller", leader: "leader"}
    return {boot.broker: names.get(boot.broker, "follower") for boot in scenario.boots}


def record(
    story: str, mix: Mix, version: MixedVersion, folder: Path, through: Sequence[str]
) -> None:
    """Play it, and keep its recording and the sentences of real Kafka's warnings."""
    print(f"{story} {mix}: running", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / f"{story}.yaml"
    file.write_text(scenario_text(story, mix, version))
    out = folder / "runs"
    command = [*through, *ISR, "run", str(file), "--target", "processes", "--json"]
    for _ in range(PLAYS):
        done = subprocess.run(
            [*command, "--out", str(out)], capture_output=True, text=True, check=False, cwd=ROOT
        )
        if done.returncode not in (0, 1, UNKNOWN):
            print(f"{story} {mix}: {done.stderr.strip()[-2000:]}", file=sys.stderr, flush=True)
            return
        run = Path(json.loads(done.stdout)["run_directory"])
        events = list(read_events(run / TRACE))
        up_us = next(e.t for e in events if isinstance(e, ActionApplied) and e.do == "up")
        first_us = next(e.t for e in events if isinstance(e, BrokerStarting))
        if done.returncode != UNKNOWN and up_us - first_us <= UP_WITHIN_US:
            break
        print(f"{story} {mix}: the machine was late", file=sys.stderr, flush=True)
    else:
        return
    settings = settings_of(load(file), version.kafka)
    # Behind the end all brokers shut down at once, each as far as the others still answer.
    began_ms = msgspec.json.decode((run / "processes" / "began.json").read_bytes(), type=float)
    ended_s = (began_ms * 1000 + up_us + load(file).duration_us) / 1e6
    write_recording(export(events, settings, f"{story} {mix}"), folder)
    sentences = {
        broker.name: sorted(set(warnings(broker, ended_s)))
        for broker in sorted(run.glob("processes/broker-*/"))
    }
    (folder / _WARNINGS).write_bytes(msgspec.json.format(msgspec.json.encode(sentences)))
    shutil.rmtree(out)


def settings_of(scenario: LoadedScenario, kafka: str) -> Fact:
    """The first line of a recording."""
    return {"t": None, "kind": "settings", "kafka": kafka, **scenario.settings}


def warnings(broker: Path, ended_s: float) -> Iterator[str]:
    """What a real broker logged as WARN or worse until then: the sentences, without what varies."""
    for log in sorted(broker.glob("logs/*.log")):
        for line in log.read_text(errors="replace").splitlines():
            match = _LOGGED.match(line)
            if match and datetime.fromisoformat(match[1]).astimezone().timestamp() < ended_s:
                text = _REQUEST.sub("(a request)", _VARIABLE.sub("N", match[2]))
                yield _LIST.sub("N", text)


# -- the judge -------------------------------------------------------------------------------------


def judged(story: Path, version: MixedVersion) -> Iterator[MixedResult]:
    """Each mix against all-real runs; an all-real run against the other ones."""
    real = [folder for folder in folders_of(story, ALL_REAL) if (folder / _WARNINGS).exists()]
    if len(real) < 2:
        return
    recordings = {folder: read_recording(folder) for folder in real}
    usual = {sentence for folder in real for sentence in sentences_of(folder)}
    for mix in MIXES:
        verdicts: list[Verdict] = []
        unusual: set[str] = set()
        for folder in folders_of(story, mix):
            if not (folder / _WARNINGS).exists():
                continue
            reference = Reference(recordings.get(folder) or read_recording(folder))
            others = [recording for other, recording in recordings.items() if other != folder]
            verdicts.append(conclude(reference, [reference.examine(one) for one in others]))
            if mix == ALL_REAL:
                peers = {s for other in real if other != folder for s in sentences_of(other)}
                unusual |= sentences_of(folder) - peers
            else:
                unusual |= sentences_of(folder) - usual
        if verdicts:
            yield result_of(story.name, version, mix, verdicts, unusual)


def folders_of(story: Path, mix: Mix) -> list[Path]:
    return sorted((story / str(mix)).glob("*/"))


def sentences_of(folder: Path) -> set[str]:
    by_broker = msgspec.json.decode((folder / _WARNINGS).read_bytes(), type=dict[str, list[str]])
    return {sentence for sentences in by_broker.values() for sentence in sentences}


def result_of(
    story: str, version: MixedVersion, mix: Mix, verdicts: Sequence[Verdict], unusual: set[str]
) -> MixedResult:
    """`equal`: of the runs, those with an all-real run that is equal in each criterion."""
    unmatched = [verdict for verdict in verdicts if not verdict.matched]
    return MixedResult(
        kafka=version.kafka,
        propagation=version.propagation,
        story=story,
        mix=str(mix),
        runs=len(verdicts),
        matched=len(verdicts) - len(unmatched),
        equal=", ".join(str(sum(v.points[one] for v in verdicts)) for one in CRITERIA),
        delays=sum(len(v.timings) for v in verdicts),
        delays_inside=sum(timing.inside for v in verdicts for timing in v.timings),
        unusual_sentences="; ".join(sorted(unusual)),
        difference=difference_of(unmatched[0]) if unmatched else "",
    )


if __name__ == "__main__":
    sys.exit(main())
