"""`isr record SCENARIO`: play a scenario on real Apache Kafka, and record what it did."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from emulator.cli.parts.options import AsJson, orderly_end, performing, width_of
from emulator.cli.parts.run_report import EXIT_CODES, report
from emulator.forensics.record import profile_of, record
from emulator.runs.session import Request
from emulator.scenario import shipped
from emulator.scenario.load import LoadedScenario, load
from emulator.scenario.units import show_us
from emulator.scenario.version import Chosen
from emulator.worlds.real_kafka.cluster import RealCluster
from emulator.worlds.real_kafka.possible import check_possible
from emulator.worlds.real_kafka.release import Release, check_version, find_release
from zk.real.server import find_java

PLAIN_EVERY_S = 5.0
LIVE_EVERY_S = 0.2


def command(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A name (isr scenarios) or a YAML file.")
    ],
    kafka: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Fetched with Maven into a cache folder: 2.6.3."),
    ] = None,
    kafka_home: Annotated[
        Path | None, typer.Option(metavar="DIR", help="An unpacked release that you have.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any Kafka setting; may be repeated."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where runs go: DIR/SCENARIO/TIME-0x0.")
    ] = Path("runs"),
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress line, no figures.")] = False,
) -> None:
    """Play a scenario on real Kafka brokers and a real ZooKeeper server, in real time.

    Brokers are processes on 127.0.0.1; pause is SIGSTOP, kill SIGKILL, terminate SIGTERM, and each
    reaches ZooKeeper through a proxy that can be cut. The run directory is one like any other (isr
    show, describe, check, why), with the brokers' logs, and with a recording.jsonl: isr conform
    holds the emulator to it. What a real cluster cannot be given is refused before anything starts;
    whatever ends the run, nothing of it goes on.

    Exit code 0: all expectations held, 1: one did not, 2: unknown.
    """
    if kafka is not None:
        check_version(kafka)
    loaded = _loaded(scenario, kafka or "2.6.3", sets or [])
    find_java()
    console = Console(stderr=as_json, highlight=False, width=width_of(as_json=as_json))
    with orderly_end():
        release = find_release(kafka, kafka_home)
        if release.version != kafka:
            loaded = _loaded(scenario, release.version, sets or [])
        check_possible(loaded, release.numbers)
        if not quiet:
            took = show_us(loaded.duration_us)
            console.print(f"{loaded.name}, {took}, on real Kafka {release.version}")
        repeat = _repeat(scenario, kafka, kafka_home, sets or [], out)
        request = Request(
            scenario=loaded,
            seed=0,
            zookeeper=f"embedded, Kafka {release.version}",
            sets=tuple(sets or ()),
            repeat=repeat,
            base=out,
        )
        line = _Line(release, loaded, shown=not quiet)
        performed = performing(lambda: record(request, release, line))
    report(console, performed, repeat, quiet=quiet)
    if as_json:
        typer.echo(msgspec.json.encode(performed.summary))
    raise typer.Exit(EXIT_CODES[performed.summary.verdict])


def _loaded(scenario: str, version: str, sets: list[str]) -> LoadedScenario:
    """The scenario as the version's profile reads it."""
    return load(shipped.find(scenario), sets, Chosen(profile_of(version)))


def _repeat(scenario: str, kafka: str | None, home: Path | None, sets: list[str], out: Path) -> str:
    words = ["isr", "record", scenario]
    words += ["--kafka", kafka] if kafka else []
    words += ["--kafka-home", str(home)] if home else []
    words += [word for pair in sets for word in ("--set", pair)]
    words += ["--out", str(out)] if out != Path("runs") else []
    return shlex.join(words)


class _Line:
    """Where the run is, on standard error: in place on a terminal, else a line now and then."""

    def __init__(self, release: Release, scenario: LoadedScenario, *, shown: bool) -> None:
        self._whole = show_us(scenario.duration_us)
        self._shown, self._live = shown, sys.stderr.isatty()
        self._told_s = 0.0

    def __call__(self, at_us: int, cluster: RealCluster) -> None:
        now_s = time.monotonic()
        if not self._shown or now_s - self._told_s < (
            LIVE_EVERY_S if self._live else PLAIN_EVERY_S
        ):
            return
        self._told_s = now_s
        notes = cluster.notes
        up = [str(b) for b, broker in sorted(cluster.brokers.items()) if broker.runs]
        text = (
            f"{at_us / 1e6:7.1f} s of {self._whole}  brokers {', '.join(up) or 'none'}"
            f"  {len(notes.asked)} ZooKeeper requests  {len(notes.produced)} records"
        )
        print(f"\r\x1b[K{text}" if self._live else text, end="" if self._live else "\n",
              file=sys.stderr, flush=True)  # fmt: skip
