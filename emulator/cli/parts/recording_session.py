"""Recording a scenario on real Kafka, with a progress line: for isr record and isr calibrate."""

from __future__ import annotations

from pathlib import Path

from emulator.cli.parts.options import play_or_explain, report_console
from emulator.cli.parts.progress import ProgressLine
from emulator.forensics.record import record
from emulator.runs.session import Played, Request
from emulator.scenario.load import LoadedScenario
from emulator.scenario.units import show_us
from emulator.worlds.real_kafka.release import Release
from emulator.worlds.real_kafka.world import RealKafkaWorld


def record_shown(
    loaded: LoadedScenario,
    release: Release,
    *,
    repeat: str,
    base: Path,
    sets: tuple[str, ...] = (),
    as_json: bool = False,
    quiet: bool = False,
) -> Played:
    """`repeat`: the command that records it again."""
    whole_us = loaded.duration_us
    if not quiet:
        console = report_console(as_json=as_json)
        console.print(f"{loaded.name}, {show_us(whole_us)}, on real Kafka {release.version}")
    request = Request(
        scenario=loaded,
        seed=0,
        zookeeper=f"embedded, Kafka {release.version}",
        sets=sets,
        repeat=repeat,
        base=base,
    )
    with ProgressLine(total=whole_us, shown=not quiet) as line:

        def on_progress(at_us: int, world: RealKafkaWorld) -> None:
            hosts = sorted(world.cluster.hosts.items())
            up = ", ".join(str(broker) for broker, host in hosts if host.real.runs)
            notes = world.notes
            line.update(
                f"{at_us / 1e6:7.1f} s of {show_us(whole_us)}  brokers {up or 'none'}"
                f"  {len(notes.requests)} ZooKeeper requests  {len(notes.produced)} records",
                at_us,
            )

        return play_or_explain(lambda: record(request, release, on_progress))
