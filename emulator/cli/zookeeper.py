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

import typer
from rich.console import Console

from emulator.cli.parts.options import RunArgument, orderly_end, print_json, read_duration
from emulator.cli.parts.zookeeper_log import Selection, as_json_line, read_run_log, table
from emulator.runs.run_directory import find_run
from emulator.scenario.errors import UserError
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
                _announce(made, as_json=as_json)
                # A signal to us is raised while we wait here.
                process = os.pidfd_open(made.pid)
                try:
                    poll = select.poll()
                    poll.register(process, select.POLLIN)
                    poll.poll()
                finally:
                    os.close(process)
                text = "the ZooKeeper server has ended by itself (killed, or no memory)"
                raise StartFailed(text)
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
    ms, rest = divmod(read_duration(option, text), 1000)
    if rest or ms < 1:
        raise UserError(f"{option} {text}: whole milliseconds, at least 1ms")
    return ms


def _announce(made: EmbeddedServer, *, as_json: bool) -> None:
    shortest, longest = made.min_session_timeout_ms, made.max_session_timeout_ms
    if as_json:
        about = {
            "address": str(made.address),
            "pid": made.pid,
            "data": str(made.data_dir),
            "tick_ms": made.tick_ms,
            "min_session_ms": shortest,
            "max_session_ms": longest,
        }
        print_json(about)
        return
    print(made.address, flush=True)
    typer.echo(
        f"ZooKeeper, process {made.pid}, data in {made.data_dir}; sessions of {shortest} to "
        f"{longest} ms. Ctrl-C ends it.",
        err=True,
    )


@app.command("log", epilog="Exit codes: 0; 64 when RUN has no log, or not all of it.")
def log(
    run: RunArgument,
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
    stored = read_run_log(run)
    chosen = Selection(path, None if session is None else _session_id(session), broker)
    # What cannot be in this log is a mistake; what merely did not happen is an empty table.
    sessions = {entry.transaction.session_id for entry in stored.entries}
    if chosen.session is not None and chosen.session not in sessions:
        raise UserError(f"--session {chosen.session % (1 << 64):#x}: no such session in this log")
    if broker is not None and broker not in stored.owners.values():
        known = ", ".join(map(str, sorted(set(stored.owners.values())))) or "none"
        raise UserError(f"--broker {broker}: no session of it in this log; it has {known}")
    if parquet is not None:
        from emulator.analysis.sweep.stored import add_log

        key = add_log(find_run(run), parquet, stored.entries, stored.owners)
        number = len(stored.entries)
        typer.echo(f"{number:,} transactions of {key.scenario}/{key.run} in {parquet}")
    elif as_json:
        for entry in stored.entries:
            if chosen.has(stored, entry):
                print_json(as_json_line(stored, entry))
    else:
        wide = sys.stdout.isatty() or "COLUMNS" in os.environ
        Console(width=None if wide else UNFOLDED, highlight=False).print(table(stored, chosen))
    if stored.torn:
        raise UserError(stored.torn)


def _session_id(text: str) -> int:
    """Ids are signed 64-bit numbers; ZooKeeper prints them as unsigned hexadecimal ones."""
    try:
        number = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        raise UserError(f"--session {text}: a number such as 0x1000abc is wanted") from None
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
