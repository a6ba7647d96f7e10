"""`isr zookeeper`: the embedded server in the foreground. `isr zookeeper log RUN`: what a run's
server applied, from its own transaction log.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from emulator.cli.parts.options import orderly_end
from emulator.cli.parts.zookeeper_log import Log, Wanted, as_json_line, read_run_log, table
from emulator.runs.run_directory import RUN_HELP, find_run
from emulator.scenario.errors import UserError
from emulator.scenario.units import BadDuration, duration_us
from zk.real.server import EmbeddedServer, StartFailed

UNFOLDED = 1000
"""Columns where the output is no terminal: one line per transaction, for grep."""

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def server(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where its data stays; default: gone with the server."),
    ] = None,
    tick: Annotated[str, typer.Option(metavar="TIME", help="tickTime.")] = "2s",
    min_session: Annotated[
        str | None, typer.Option(metavar="TIME", help="Shortest session; default: two ticks.")
    ] = None,
    max_session: Annotated[
        str | None, typer.Option(metavar="TIME", help="Longest session; default: twenty ticks.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The address as a JSON object.")] = False,
) -> None:
    """Run the embedded ZooKeeper server in the foreground, until Ctrl-C.

    Its address is the first line on standard output: for isr run --zookeeper HOST:PORT, and for
    ZooKeeper's own tools. `isr zookeeper log RUN` reads the log of a run's server.
    """
    if context.invoked_subcommand is not None:
        return
    with orderly_end(), _folder(data) as folder:
        made = EmbeddedServer(
            folder,
            tick_ms=_whole_ms("--tick", tick),
            min_session_timeout_ms=_whole_ms("--min-session", min_session) or None,
            max_session_timeout_ms=_whole_ms("--max-session", max_session) or None,
            port=port,
        )
        try:
            with made:
                _say(made, as_json=as_json)
                _until_it_ends(made)
        except KeyboardInterrupt:
            typer.echo("the ZooKeeper server has ended", err=True)


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    """The user's own, or one that goes with the server."""
    if data is None:
        with TemporaryDirectory(prefix="isr-zookeeper-") as scratch:
            yield Path(scratch)
        return
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--data {data}: {error.strerror}") from None
    if not os.access(data, os.W_OK):
        raise UserError(f"--data {data}: cannot be written")
    yield data


def _whole_ms(option: str, text: str | None) -> int:
    """A time of at least a millisecond; 0 where none is given."""
    if text is None:
        return 0
    try:
        ms, rest = divmod(duration_us(text), 1000)
    except BadDuration as error:
        raise UserError(f"{option}: {error}") from None
    if rest or ms < 1:
        raise UserError(f"{option} {text}: whole milliseconds, at least 1ms")
    return ms


def _say(made: EmbeddedServer, *, as_json: bool) -> None:
    if as_json:
        about = {
            "address": str(made.address),
            "pid": made.pid,
            "data": str(made.data_dir),
            "tick_ms": made.tick_ms,
            "min_session_ms": made.min_session_timeout_ms,
            "max_session_ms": made.max_session_timeout_ms,
        }
        print(msgspec.json.encode(about).decode(), flush=True)
        return
    print(made.address, flush=True)
    shortest, longest = made.min_session_timeout_ms, made.max_session_timeout_ms
    typer.echo(
        f"ZooKeeper, process {made.pid}, data in {made.data_dir}; sessions of {shortest} to "
        f"{longest} ms. Ctrl-C ends it.",
        err=True,
    )


def _until_it_ends(made: EmbeddedServer) -> None:
    """Wait for the server's process. A signal to ours is raised here."""
    process = os.pidfd_open(made.pid)
    try:
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.poll()
    finally:
        os.close(process)
    raise StartFailed("the ZooKeeper server has ended by itself (killed, or no memory)")


@app.command("log", epilog="Exit codes: 0; 64 when RUN has no log, or not all of it.")
def log(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help=RUN_HELP),
    ],
    path: Annotated[
        str, typer.Option(metavar="PREFIX", help="Only what touches znodes from here down.")
    ] = "",
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this session: 0x... as ZooKeeper has it.")
    ] = None,
    broker: Annotated[
        int | None, typer.Option(metavar="ID", help="Only the sessions of this broker.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per transaction and line.")
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="All of it into this data set, beside the run's events."),
    ] = None,
) -> None:
    """Print the transaction log of a run's ZooKeeper server: what it applied, in whose session.

    The server wrote it, no line of this project did. A session is a broker's when it created that
    broker's registration.
    """
    found = read_run_log(run)
    wanted = Wanted(path, _session(session), broker)
    _check(found, wanted)
    if parquet is not None:
        _keep(run, found, parquet)
    elif as_json:
        for entry in found.entries:
            if wanted.has(found, entry):
                typer.echo(as_json_line(found, entry))
    else:
        wide = sys.stdout.isatty() or "COLUMNS" in os.environ
        Console(width=None if wide else UNFOLDED, highlight=False).print(table(found, wanted))
    if found.torn:
        raise UserError(found.torn)


def _keep(run: str, found: Log, parquet: Path) -> None:
    from emulator.analysis.sweep.stored import add_log

    key = add_log(find_run(run), parquet, found.entries, found.owners)
    typer.echo(f"{len(found.entries):,} transactions of {key.scenario}/{key.run} in {parquet}")


def _session(text: str | None) -> int | None:
    """Ids are signed 64-bit numbers; ZooKeeper prints them as unsigned hexadecimal ones."""
    if text is None:
        return None
    try:
        number = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        raise UserError(f"--session {text}: a number such as 0x1000abc is wanted") from None
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _check(found: Log, wanted: Wanted) -> None:
    """What cannot be in this log is a mistake; what merely did not happen is an empty table."""
    sessions = {entry.transaction.session_id for entry in found.entries}
    if wanted.session is not None and wanted.session not in sessions:
        raise UserError(f"--session {wanted.session % (1 << 64):#x}: no such session in this log")
    if wanted.broker is not None and wanted.broker not in found.owners.values():
        known = ", ".join(map(str, sorted(set(found.owners.values())))) or "none"
        raise UserError(f"--broker {wanted.broker}: no session of it in this log; it has {known}")
