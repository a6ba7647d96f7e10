"""`isr cluster`: a cluster that stays up, to try clients and faults on.

Owns the options, and how a cluster is shown; `runs.cluster_session` runs it. Every action of the
registry is a command under its own name.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from emulator.cli.parts.cluster_run import newest_cluster
from emulator.cli.parts.options import (
    GuardOption,
    ProfileOption,
    PropagationOption,
    Sets,
    check_playable,
    chosen_version,
    interrupt_on_signals,
    play_or_explain,
    print_json,
    read_duration,
    report_console,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.target import EMBEDDED, IN_CONTAINERS, PROCESSES, read_kafka_logs
from emulator.runs.control import (
    Apply,
    ClusterStatus,
    ControlRequest,
    ControlResponse,
    Down,
    Heal,
    Status,
    request_of,
)
from emulator.scenario.actions.base import actions
from emulator.scenario.errors import UserError
from emulator.scenario.typed import SHORT, usage

LOG = "cluster.log"
ZOOKEEPER = "zookeeper"
RunOption = Annotated[
    str, typer.Option("--run", metavar="RUN", help="The cluster's run; default: the newest.")
]
ClusterJson = Annotated[bool, typer.Option("--json", help="Print the status as one JSON object.")]

if TYPE_CHECKING:
    from emulator.runs.session import Request

app = typer.Typer(
    rich_markup_mode=None,
    help="Run a cluster of broker processes to try clients and faults on.",
    epilog="Every action of a scenario is a command: it is done at once, and undone after --for or"
    " by heal. cut, delay and stop are short for cut_link, delay_link and terminate.",
)


@app.command()
def up(
    brokers: Annotated[int, typer.Option(min=1, metavar="N", help="Number of brokers.")] = 3,
    kafka: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N=VERSION",
            help="Broker N is real Apache Kafka of this version, such as 3=2.6.3; may be repeated.",
        ),
    ] = None,
    hollow: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Further emulated brokers, all in one process."),
    ] = 0,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    sets: Sets = None,
    containers: Annotated[
        bool, typer.Option("--containers", help="One container per broker, and for ZooKeeper.")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the run to DIR/cluster/TIME-0x0.")
    ] = Path("runs"),
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when it is ready; it goes on.")
    ] = False,
    as_json: ClusterJson = False,
) -> None:
    """Start ZooKeeper and brokers, wait until they are ready, and run until Ctrl-C or down.

    Ready means that every broker has registered, and that its metadata has all brokers and a
    controller. The run is a run like any other when the cluster is down; its scenario.yaml has the
    faults that you caused.

    \b
      isr cluster up -d
      isr cluster up --brokers 1 --kafka 1=2.6.3 --hollow 200
      isr cluster pause 2 --for 10s
      isr cluster down

    Exit codes: 0 the cluster ran, and has ended (with -d: it is ready).
    """
    # Other commands of the group need not wait for this import.
    from emulator.runs.session import Request
    from emulator.scenario.load import loads

    chosen = chosen_version(profile, guard, propagation)
    target = IN_CONTAINERS[0] if containers else PROCESSES
    loaded = loads(
        _scenario_text(brokers, kafka or [], hollow),
        "cluster",
        "isr cluster up",
        sets or (),
        chosen,
    )
    check_playable(loaded, EMBEDDED, 1, target)
    request = Request(
        scenario=loaded,
        seed=0,
        zookeeper=EMBEDDED,
        target=target,
        sets=tuple(sets or ()),
        repeat=shlex.join(["isr", *sys.argv[1:]]),
        base=out,
        read_kafka=read_kafka_logs(loaded),
    )
    if not detach:
        _run(request, as_json=as_json, on_ready=lambda run: None)
        return
    # The child prints its progress until it is ready, and reports that by a byte.
    ready, is_ready = os.pipe()
    child = os.fork()
    if child:
        os.close(is_ready)
        raise typer.Exit(_wait_until_ready(child, ready))
    os.close(ready)
    os.setsid()

    def leave_terminal(run: Path) -> None:
        log = os.open(run / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for descriptor, stands_for in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, stands_for)
        os.close(log)
        os.close(nothing)
        os.write(is_ready, b"\0")
        os.close(is_ready)

    _run(request, as_json=as_json, on_ready=leave_terminal)


def _scenario_text(brokers: int, kafka: list[str], hollow: int) -> str:
    """A scenario with nothing but the brokers."""
    hosts = dict.fromkeys(range(brokers + 1, brokers + hollow + 1), "hollow")
    for pair in kafka:
        match = re.fullmatch(r"(\d+)=(\S+)", pair)
        if match is None:
            raise UserError(f"--kafka {pair}: expected N=VERSION, such as 3=2.6.3")
        hosts[int(match[1])] = f"kafka {match[2]}"
    sections: dict[str, object] = {
        "about": "a cluster by hand",
        "cluster": {"brokers": brokers + hollow},
    }
    if hosts:
        sections["hosts"] = hosts
    return yaml.safe_dump({**sections, "run": "1s"}, sort_keys=False, default_flow_style=None)


def _wait_until_ready(child: int, ready: int) -> int:
    """The exit code. Signals are forwarded to the child, which ends in an orderly way."""

    def pass_on(number: int, _: FrameType | None) -> None:
        os.kill(child, signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    with os.fdopen(ready, "rb") as pipe:
        if pipe.read(1):
            return 0
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(request: Request, *, as_json: bool, on_ready: Callable[[Path], None]) -> None:
    from emulator.cli.parts.run_report import print_violations
    from emulator.runs.cluster_session import ClusterListener, run_cluster

    console = report_console(as_json=as_json)
    with interrupt_on_signals(), ProgressLine() as line:
        line.step("starting ZooKeeper")

        def show_ready(status: ClusterStatus) -> None:
            line.close()
            if as_json:
                print_json(status)
            else:
                _print_ready(console, status)
            on_ready(Path(status.run))

        def show_line(text: str) -> None:
            console.print(text, highlight=False, markup=False)

        listener = ClusterListener(line.step, show_ready, show_line)
        played = play_or_explain(lambda: run_cluster(request, listener))
    if played.summary.violations:
        print_violations(console, played.summary.violations, played.events)
    console.print(f"run directory  {escape(str(played.directory))}", soft_wrap=True)


def _print_ready(console: Console, status: ClusterStatus) -> None:
    table = Table.grid(padding=(0, 2))
    for name, text in (
        ("bootstrap servers", status.bootstrap),
        ("ZooKeeper", status.zookeeper),
        ("run directory", status.run),
    ):
        table.add_row(name, escape(text))
    console.print(table, soft_wrap=True)
    console.print("ready; isr cluster status shows it, isr cluster down (or Ctrl-C) ends it")


# -- requests to a running cluster -----------------------------------------------------------------


def _request(run: str, request: ControlRequest) -> ControlResponse:
    return request_of(newest_cluster(run), request)


@app.command()
def status(run: RunOption = "", as_json: ClusterJson = False) -> None:
    """Show the brokers, the controller, and the faults that are in effect."""
    now = _request(run, Status()).status
    assert now is not None
    if as_json:
        print_json(now)
        return
    console = report_console()
    table = Table.grid(padding=(0, 2))
    for one in now.brokers:
        role = "controller" if one.broker == now.controller else ""
        table.add_row(f"broker {one.broker}", one.state, one.host, one.address, role)
    console.print(table)
    console.print(f"ZooKeeper       {now.zookeeper}", soft_wrap=True)
    console.print(f"current faults  {'; '.join(now.faults) or 'none'}", markup=False)
    console.print(f"up for          {now.up_s:.1f} s")
    console.print(f"run directory   {now.run}", markup=False, soft_wrap=True)


@app.command()
def logs(
    broker: Annotated[
        str | None, typer.Argument(metavar="[N|hollow|zookeeper]", help="Default: every broker.")
    ] = None,
    run: RunOption = "",
) -> None:
    """Print the log of a broker, of all brokers, or of ZooKeeper; also of a cluster that is down.

    \b
      isr cluster logs 2
    """
    from emulator.worlds.processes.hollow_brokers import LOG as HOLLOW_LOG
    from emulator.worlds.processes.trace_files import PROCESSES as PROCESS_FOLDER

    folder = newest_cluster(run)
    processes = folder / PROCESS_FOLDER
    files = {path.stem.rpartition("-")[2]: path for path in processes.glob("broker-*.log")}
    for path in processes.glob("broker-*/logs/server.log"):  # a real Kafka's log
        files[path.parents[1].name.rpartition("-")[2]] = path
    files = dict(sorted(files.items(), key=lambda item: int(item[0])))
    if (processes / HOLLOW_LOG).exists():
        files["hollow"] = processes / HOLLOW_LOG
    server = folder / "zookeeper" / "zookeeper.log"
    if broker == ZOOKEEPER and server.exists():
        files = {ZOOKEEPER: server}
    elif broker is not None:
        if broker not in files:
            raise UserError(
                f"logs {broker}: no such log; there are {', '.join([*files, ZOOKEEPER])}"
            )
        files = {broker: files[broker]}
    for name, file in files.items():
        if len(files) > 1:
            typer.echo(f"==> {'hollow brokers' if name == 'hollow' else f'broker {name}'} <==")
        typer.echo(file.read_text(errors="replace"), nl=False)


@app.command()
def heal(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Names or parameters of faults; default: all."),
    ] = None,
    run: RunOption = "",
) -> None:
    """End the current faults, or those that the words name.

    \b
      isr cluster heal
      isr cluster heal 1 zookeeper
    """
    typer.echo(_request(run, Heal(words or [])).text)


@app.command()
def down(run: RunOption = "") -> None:
    """End the cluster, and wait until its run is written."""
    typer.echo(_request(run, Down()).text)


def _add_action(name: str, meaning: str) -> None:
    """Add a command for an action of the registry."""
    # As a default, because typer evaluates annotations where `metavar` is unknown.
    takes = typer.Argument(None, metavar=usage(meaning).partition(" ")[2], show_default=False)

    def act(
        words: list[str] | None = takes,
        lasting: Annotated[
            str | None, typer.Option("--for", metavar="TIME", help="Undo it after this time.")
        ] = None,
        run: RunOption = "",
    ) -> None:
        for_us = 0 if lasting is None else read_duration("--for", lasting)
        typer.echo(_request(run, Apply([name, *(words or [])], for_us)).text)

    act.__doc__ = actions()[meaning].__doc__
    app.command(name, hidden=name in SHORT.values())(act)


for _name, _meaning in sorted({**{one: one for one in actions()}, **SHORT}.items()):
    _add_action(_name, _meaning)
