"""`isr top`: a running cluster on the screen, refreshed."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import msgspec
import typer

from emulator.cli.parts.cluster_run import zookeeper_of
from emulator.cli.parts.options import ClusterZooKeeper, print_json
from emulator.cli.parts.zookeeper_wait import wait_for_zookeeper
from emulator.cli.tap import READY_MS, listen_at
from emulator.scenario.errors import UserError
from emulator.view.live.top_model import SAME, UNKNOWN, Look, views
from emulator.view.live.watch import ClusterObserver
from emulator.worlds.clients.metadata_query import MetadataQuery
from zk.real.server import HOST

OPTIONS = {
    "epilog": "Keys: arrows select a partition, f filters, space freezes, q quits. Exit code 64: no"
    " ZooKeeper at the address, or no terminal."
}
_PATIENCE_S = 10.0


def command(
    zookeeper: ClusterZooKeeper = f"{HOST}:2181",
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST]:PORT",
            help="Also run a tap here, to count the conflicts of brokers that connect through it.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the current state as one JSON object.")
    ] = False,
) -> None:
    """Show a running cluster on the screen, as ZooKeeper, the controller and the brokers see it.

    Read-only; works with any Kafka that keeps its state in ZooKeeper. A broker's column is its
    metadata cache: = agrees with ZooKeeper, ? unknown.

    \b
      isr top --zookeeper 127.0.0.1:2181
    """
    address = zookeeper_of(zookeeper)
    where = None if listen is None else listen_at(listen)
    if not (as_json or sys.stdout.isatty()):
        raise UserError("isr top needs a terminal; use --json, or isr watch")
    wait_for_zookeeper(address, READY_MS)
    with ClusterObserver(address, MetadataQuery(), where) as observer:
        if as_json:
            look = _complete_look(observer)
            compared = {
                name: [
                    {
                        "view": whose,
                        "state": state,
                        "differs": text not in (SAME, UNKNOWN),
                        "known": text != UNKNOWN,
                    }
                    for whose, state, text in views(look, one)
                ]
                for name, one in look.seen.partitions.items()
            }
            print_json({**msgspec.structs.asdict(look), "views": compared})
            return
        from emulator.view.live.screen import Top

        Top(observer.look).run()


def _complete_look(observer: ClusterObserver) -> Look:
    """The first look with all brokers' responses, or the last one after ten seconds."""
    until_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until_s:
        look = observer.look()
        if look.connected and look.brokers.keys() == look.seen.brokers.keys():
            return look
        observer.wait_for_change(until_s - time.monotonic())
    return observer.look()
