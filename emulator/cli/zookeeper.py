"""`isr zookeeper`: the embedded server in the foreground. `isr zookeeper log RUN`: the transaction
log of a run's server.
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

from emulator.cli.parts.options import RunArgument, interrupt_on_signals, print_json, read_duration
from emulator.cli.parts.zookeeper_log import Selection, as_json_line, log_table, read_run_log
from emulator.runs.run_directory import find_run
from emulator.scenario.errors import UserError
from zk.real.server import EmbeddedServer, StartFailed

UNWRAPPED_WIDTH = 1000
"""The width if the output is not a terminal: one line per transaction, for grep."""

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def server(
    context: typer.Context,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port; 0 picks a free one.")
    ] = 0,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Data directory; default: a temporary one."),
    ] = None,
    tick: Annotated[str, typer.Option(metavar="TIME", help="ZooKeeper's tickTime.")] = "2s",
    min_session: Annotated[
        str | None, typer.Option(metavar="TIME", help="Shortest session timeout; default: 2 ticks.")
    ] = None,
    max_session: Annotated[
        str | None, typer.Option(metavar="TIME", help="Longest session timeout; default: 20 ticks.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address as a JSON object.")
    ] = False,
) -> None:
    """Run the embedded ZooKeeper server in the foreground, until Ctrl-C.

    The first line of output is its address, for isr run --zookeeper HOST:PORT and for ZooKeeper's
    own tools. `isr zookeeper log RUN` prints the log of a run's server.

    \b
      isr zookeeper --port 2181
    """
    if context.invoked_subcommand is not None:
        return
    with interrupt_on_signals(), _folder(data) as folder:
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
                # The signal handlers of `interrupt_on_signals` raise KeyboardInterrupt during this
                # wait.
                process = os.pidfd_open(made.pid)
                try:
                    poll = select.poll()
                    poll.register(process, select.POLLIN)
                    poll.poll()
                finally:
                    os.close(process)
                text = "the ZooKeeper server has ended by itself (killed, or out of memory)"
                raise StartFailed(text)
        except KeyboardInterrupt:
            typer.echo("the ZooKeeper server has ended", err=True)


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    """The user's directory, or a temporary one."""
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
    """A duration of at least a millisecond; 0 for the default."""
    if text is None:
        return 0
    ms, remainder_us = divmod(read_duration(option, text), 1000)
    if remainder_us or ms < 1:
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


@app.command("log", epilog="Exit codes: 0 the log is complete; 64 RUN has no log, or a torn one.")
def log(
    run: RunArgument,
    path: Annotated[
        str, typer.Option(metavar="PREFIX", help="Only transactions on paths that begin with this.")
    ] = "",
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this session, such as 0x1000abc.")
    ] = None,
    broker: Annotated[
        int | None, typer.Option(metavar="ID", help="Only sessions of this broker.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per transaction.")
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Add the whole log to this data set, beside the run's events."
        ),
    ] = None,
) -> None:
    """Print the transaction log of a run's ZooKeeper server.

    The log is the server's own file, not made by the emulator. A session belongs to the broker
    whose registration it created.

    \b
      isr zookeeper log latest --broker 1
    """
    stored = read_run_log(run)
    chosen = Selection(path, None if session is None else _session_id(session), broker)
    # An unknown session or broker is an error; a known one without transactions gives an empty
    # table.
    sessions = {entry.transaction.session_id for entry in stored.entries}
    if chosen.session is not None and chosen.session not in sessions:
        raise UserError(f"--session {chosen.session % (1 << 64):#x}: no such session in this log")
    if broker is not None and broker not in stored.owners.values():
        known = ", ".join(map(str, sorted(set(stored.owners.values())))) or "none"
        raise UserError(f"--broker {broker}: no session of it in this log; known brokers: {known}")
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
        Console(width=None if wide else UNWRAPPED_WIDTH, highlight=False).print(
            log_table(stored, chosen)
        )
    if stored.torn:
        raise UserError(stored.torn)


def _session_id(text: str) -> int:
    """Ids are signed 64-bit numbers; ZooKeeper prints them as unsigned hexadecimal ones."""
    try:
        number = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        raise UserError(f"--session {text}: not a number such as 0x1000abc") from None
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
