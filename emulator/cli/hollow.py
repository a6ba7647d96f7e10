"""`isr hollow`: many emulated brokers in one process. Another process runs it; it is in no list.

Owns how the words that follow `isr broker` are read for each of them; `worlds.processes.hollow`
runs them.
"""

from __future__ import annotations

import resource
import socket
from typing import Annotated

import typer
from typer.main import get_command

from emulator.cli import broker
from emulator.worlds.processes.broker_process import BrokerOptions
from emulator.worlds.processes.hollow import HollowBrokers

OPTIONS = {"hidden": True}


def command(
    descriptor: Annotated[int, typer.Argument(help="The connection to who launches brokers.")],
) -> None:
    """Run the brokers that another process launches and signals, until it closes the connection."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    HollowBrokers(socket.socket(fileno=descriptor), options_of).run()


def options_of(words: list[str]) -> BrokerOptions:
    """As `isr broker` reads them. Raises UserError."""
    app = typer.Typer(add_completion=False)
    app.command()(broker.command)
    read: list[BrokerOptions] = []
    get_command(app).main(words, "isr broker", standalone_mode=False, obj=read.append)
    (options,) = read
    return options
