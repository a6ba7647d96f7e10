"""`isr watch`: what changes in a running cluster, a line each."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Annotated

import msgspec
import typer

from emulator.cli.parts.options import (
    ClusterZooKeeper,
    Lasting,
    orderly_end,
    print_json,
    read_duration,
)
from emulator.cli.tap import READY_MS, with_host
from emulator.view.live.watch import Link, Watching
from emulator.view.live.zookeeper_view import Change, Seen, changes
from zk.real.server import HOST, parse_address, wait_until_ready

OPTIONS = {"epilog": "Ctrl-C (or SIGTERM) ends it, exit code 0. 64: nobody answers at --zookeeper."}
_SLICE_US = 200_000


def command(
    zookeeper: ClusterZooKeeper = f"{HOST}:2181",
    lasting: Lasting = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object per change and line.")
    ] = False,
) -> None:
    """Print what changes in a running cluster, as its ZooKeeper shows it: a line per change.

    Read-only; works with any Kafka that keeps its state in ZooKeeper. First comes what is there.
    """
    address = parse_address(with_host(zookeeper))
    until_s = None if lasting is None else time.monotonic() + read_duration("--for", lasting) / 1e6
    wait_until_ready(address, READY_MS)
    watching = Watching(address, _Lines(as_json=as_json))
    try:
        with orderly_end():
            while until_s is None or time.monotonic() < until_s:
                watching.run(_SLICE_US)
    except KeyboardInterrupt:
        pass
    finally:
        watching.close()


class _Lines:
    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._before, self._link = Seen(), Link.UP

    def __call__(self, now: Seen, link: Link) -> None:
        if link is not self._link:
            self._link = link
            self._print(Change("connection", "ZooKeeper", link.value, {"up": link is Link.UP}))
        before, self._before = self._before, now
        for change in changes(before, now):
            self._print(change)

    def _print(self, change: Change) -> None:
        at = datetime.now().astimezone()
        if self._as_json:
            when = {"at": at.isoformat(timespec="milliseconds")}
            print_json(when | msgspec.structs.asdict(change))
        else:
            print(f"{at.strftime('%H:%M:%S.%f')[:-3]}  {change.about}  {change.text}", flush=True)
