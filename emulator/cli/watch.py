"""`isr watch`: the changes in a running cluster, one per line."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Annotated

import msgspec
import typer

from emulator.cli.parts.cluster_run import zookeeper_of
from emulator.cli.parts.options import (
    ClusterZooKeeper,
    Lasting,
    interrupt_on_signals,
    print_json,
    read_duration,
)
from emulator.cli.parts.zookeeper_wait import wait_for_zookeeper
from emulator.cli.tap import READY_MS
from emulator.view.live.watch import Link, Watching
from emulator.view.live.zookeeper_view import Change, Seen, changes
from zk.real.server import HOST

OPTIONS = {"epilog": "Exit codes: 0 after Ctrl-C or SIGTERM; 64 no ZooKeeper at the address."}
_SLICE_US = 200_000


def command(
    zookeeper: ClusterZooKeeper = f"{HOST}:2181",
    lasting: Lasting = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per change.")
    ] = False,
) -> None:
    """Print the changes in a running cluster, as its ZooKeeper shows them, one per line.

    Read-only; works with any Kafka that keeps its state in ZooKeeper. The current state comes
    first.

    \b
      isr watch --zookeeper 127.0.0.1:2181 --for 30s
    """
    address = zookeeper_of(zookeeper)
    until_s = None if lasting is None else time.monotonic() + read_duration("--for", lasting) / 1e6
    wait_for_zookeeper(address, READY_MS)
    watching = Watching(address, _Lines(as_json=as_json))
    try:
        with interrupt_on_signals():
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
