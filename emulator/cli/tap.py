"""`isr tap`: a proxy between ZooKeeper clients and their server that prints the requests."""

from __future__ import annotations

import queue
import time
from datetime import datetime
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from emulator.cli.parts.cluster_run import with_host, zookeeper_of
from emulator.cli.parts.options import (
    Lasting,
    interrupt_on_signals,
    print_json,
    read_duration,
    report_console,
)
from emulator.cli.parts.zookeeper_wait import wait_for_zookeeper
from emulator.scenario.errors import UserError
from emulator.scenario.units import show_us
from zk.errors import Code
from zk.ops import Create, GetChildren, GetData, Multi, Op, Request, SetData, Sync, name_of
from zk.ops import Exists as ZkExists
from zk.real.latency_stats import TapStatistics, kind_of
from zk.real.server import HOST
from zk.real.tap import Tap, Taps

OPTIONS = {
    "epilog": "Exit codes: 0 after Ctrl-C or SIGTERM, with a summary; 64 no ZooKeeper at the"
    " address, or the port of --listen is in use."
}
READY_MS = 5_000
WAITING_MAX = 10_000
"""The number of lines that may wait for the terminal; further ones are counted, not shown."""
Answer = tuple[str, Request | str, Code, int]


def command(
    zookeeper: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT[,HOST:PORT...][/chroot]|RUN",
            help="Address of the server (with a chroot, paths are shown relative to it), or the run"
            " of isr cluster up.",
        ),
    ] = f"{HOST}:2181",
    listen: Annotated[
        str,
        typer.Option(metavar="[HOST]:PORT", help="Address for the clients; :0 picks a free port."),
    ] = f"{HOST}:2182",
    only: Annotated[
        str, typer.Option("--path", metavar="PREFIX", help="Show only znodes below this path.")
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the summary.")] = False,
    lasting: Lasting = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per response, and the summary last.")
    ] = False,
) -> None:
    """Print the requests of ZooKeeper clients, with their results and latencies.

    The tap is a proxy: point any client (Kafka, zkCli, kazoo ...) at --listen instead of the
    server. It changes nothing. A summary per operation and path pattern comes at the end.

    \b
      isr tap --zookeeper 127.0.0.1:2181 --listen :2182 --path /brokers
    """
    address, where = zookeeper_of(zookeeper), listen_at(listen)
    until_s = None if lasting is None else time.monotonic() + read_duration("--for", lasting) / 1e6
    wait_for_zookeeper(address, READY_MS)
    counted = _Counted()
    with Taps(counted, lambda: time.monotonic_ns() // 1000) as taps:
        tap = taps.open("", address, where)
        typer.echo(f"{tap.address.hosts} -> ZooKeeper {address}; Ctrl-C ends it", err=True)
        try:
            with interrupt_on_signals():
                while until_s is None or (left_s := until_s - time.monotonic()) > 0:
                    answer = counted.answers.get(timeout=None if until_s is None else left_s)
                    if not quiet and _is_below(only, answer[1]):
                        _show(answer, as_json=as_json)
        except (KeyboardInterrupt, queue.Empty):
            pass
        taps.run(lambda: None)
        _print_summary(counted, tap, as_json=as_json)


class _Counted:
    """The tap's observer: counts on the taps' thread, and leaves printing to another one."""

    def __init__(self) -> None:
        self.statistics = TapStatistics()
        self.answers: queue.Queue[Answer] = queue.Queue(WAITING_MAX)
        self.not_shown = 0

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        self.statistics.on_request(client)

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        self.statistics.on_reply(request, code, elapsed_us)
        try:
            self.answers.put_nowait((client, request, code, elapsed_us))
        except queue.Full:
            self.not_shown += 1


def _is_below(only: str, request: Request | str) -> bool:
    ops = request.ops if isinstance(request, Multi) else [request]
    return not only or any(getattr(op, "path", "").startswith(only) for op in ops)


def _show(answer: Answer, *, as_json: bool) -> None:
    client, request, code, elapsed_us = answer
    if as_json:
        op, pattern = kind_of(request)
        about: dict[str, object] = {
            "client": client,
            "op": op,
            "path": getattr(request, "path", None),
        }
        if isinstance(request, Multi):
            about["ops"] = [{"op": name_of(op), "path": op.path} for op in request.ops]
        result = {"pattern": pattern, "code": code.name, "elapsed_us": elapsed_us}
        print_json({**about, **result})
        return
    # The text: operation, path, and the parameter that decides the result.
    if isinstance(request, str):
        text = request
    elif isinstance(request, Multi):
        text = f"multi [{'; '.join(map(_operation_text, request.ops))}]"
    elif isinstance(request, ZkExists | GetData | GetChildren):
        text = f"{name_of(request)} {request.path}{' +watch' if request.watch else ''}"
    elif isinstance(request, Sync):
        text = f"sync {request.path}"
    else:
        text = _operation_text(request)
    at = datetime.now().astimezone().strftime("%H:%M:%S.%f")[:-3]
    print(f"{at}  {client:<21}  {text}  {code.name}  {show_us(elapsed_us)}", flush=True)


def _operation_text(op: Op) -> str:
    if isinstance(op, Create):
        words = ["create", op.path, *[op.mode.name.lower().replace("_", " ")] * bool(op.mode)]
        return " ".join([*words, *[_data(op.data)] * bool(op.data)])
    if isinstance(op, SetData):
        return f"setData {op.path} v{op.version} {_data(op.data)}"
    return f"{name_of(op)} {op.path} v{op.version}"


def _data(data: bytes | None) -> str:
    text = (data or b"").decode(errors="backslashreplace")
    return text if len(text) <= 120 and text.isprintable() else f"{len(data or b'')} bytes"


def _print_summary(counted: _Counted, tap: Tap, *, as_json: bool) -> None:
    summary = counted.statistics.summary()
    if as_json:
        more = {"pings": tap.pings, "not_shown": counted.not_shown, "blind_bytes": tap.blind_bytes}
        print_json({"summary": {**msgspec.to_builtins(summary), **more}})
        return
    console = report_console()
    if console.is_terminal:
        console.print()  # after the terminal's own ^C
    table = Table(box=None, pad_edge=False)
    for name in ("answers", "median", "99 %", "longest"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("operation", no_wrap=True)
    table.add_column("of")
    table.add_column("errors")
    for row in summary.rows:
        times = [show_us(us) for us in (row.median_us, row.p99_us, row.max_us)]
        errors = ", ".join(f"{name} {count:,}" for name, count in row.errors.items())
        table.add_row(f"{row.count:,}", *times, row.op, row.pattern, errors)
    console.print(table)
    words = [f"{summary.requests:,} requests of {summary.clients} connections"]
    words += [f"{summary.unanswered:,} without an answer"] * bool(summary.unanswered)
    words += [f"{tap.pings:,} pings"]
    words += [f"{counted.not_shown:,} lines not shown"] * bool(counted.not_shown)
    words += [f"{tap.blind_bytes:,} bytes not understood"] * bool(tap.blind_bytes)
    console.print("; ".join(words))


def listen_at(text: str) -> tuple[str, int]:
    host, _, port = with_host(text).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--listen {text}: HOST:PORT or :PORT")
    return host.strip("[]"), int(port)
