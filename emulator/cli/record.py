"""`isr record SCENARIO`: play a scenario on real Apache Kafka, and record what it did."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.options import (
    AsJson,
    Sets,
    interrupt_on_signals,
    print_json,
    read_seed,
    report_console,
)
from emulator.cli.parts.recording_session import record_shown
from emulator.cli.parts.run_report import EXIT_CODES, report
from emulator.kafka.profiles.base import profile_of
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, load, loads
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.worlds import draw_script
from emulator.worlds.real_kafka.capabilities import capabilities_of_kafka, check_supported
from emulator.worlds.real_kafka.release import check_version, find_release, numbers_of
from zk.real.server import find_java


def command(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="SCENARIO", help="A name from isr scenarios, or a YAML file."),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Download this version, such as 2.6.3, with Maven."),
    ] = None,
    kafka_home: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Use an unpacked release instead.")
    ] = None,
    random: Annotated[
        str | None,
        typer.Option(metavar="SEED", help="Play a random script of faults instead of a scenario."),
    ] = None,
    brokers: Annotated[
        int, typer.Option(min=3, max=5, metavar="N", help="Brokers of the random script.")
    ] = 3,
    sets: Sets = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the run to DIR/SCENARIO/TIME-0x0.")
    ] = Path("runs"),
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress line and no figures.")
    ] = False,
) -> None:
    """Play a scenario on real Kafka brokers and a real ZooKeeper server, in real time.

    Brokers are processes on 127.0.0.1. They are paused with SIGSTOP, killed with SIGKILL and
    terminated with SIGTERM; each reaches ZooKeeper through a proxy that can be cut. The run works
    with isr show, describe, check and why, and also has the brokers' logs and a recording.jsonl
    for isr conform. Unsupported actions are refused before anything starts.

    \b
      isr record brief-lag --kafka 2.6.3
      isr record --random 7 --brokers 5 --kafka 2.6.3

    Exit codes: 0 all expectations held; 1 one did not; 2 unknown.
    """
    if kafka is not None:
        check_version(kafka)
    if (scenario is None) is (random is None):
        raise UserError("name a scenario, or draw a script with --random SEED")
    seed = None if random is None else read_seed(random, "--random")

    def loaded_for(version: str) -> LoadedScenario:
        """The scenario as the version's profile reads it; a script has only faults that the version
        can be given."""
        chosen = VersionOptions(profile_of(version))
        if scenario is not None:
            return load(shipped.find(scenario), sets or (), chosen)
        assert seed is not None
        capabilities = capabilities_of_kafka(numbers_of(version))
        text = draw_script(seed, brokers, chosen, lambda one: not capabilities.refusal(one))
        return loads(text, f"random-{seed:#x}", sets=sets or (), chosen=chosen)

    loaded = loaded_for(kafka or "2.6.3")
    find_java()
    with interrupt_on_signals():
        release = find_release(kafka, kafka_home)
        if release.version != kafka:
            loaded = loaded_for(release.version)
        check_supported(loaded, release.numbers)
        words = ["isr", "record"]
        words += [scenario] if scenario else ["--random", f"{seed:#x}", "--brokers", str(brokers)]
        words += ["--kafka", kafka] if kafka else []
        words += ["--kafka-home", str(kafka_home)] if kafka_home else []
        words += [word for pair in sets or () for word in ("--set", pair)]
        words += ["--out", str(out)] if out != Path("runs") else []
        repeat = shlex.join(words)
        performed = record_shown(
            loaded,
            release,
            repeat=repeat,
            base=out,
            sets=tuple(sets or ()),
            as_json=as_json,
            quiet=quiet,
        )
    report(report_console(as_json=as_json), performed, repeat, quiet=quiet)
    if as_json:
        print_json(performed.summary)
    raise typer.Exit(EXIT_CODES[performed.summary.verdict])
