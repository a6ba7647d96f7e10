"""The command `isr`: one file per command.

A module of this package is a command if it has a function `command` (its parameters are the
options, its docstring the help), or an `app`, a `typer.Typer` with subcommands; the module's name
is the command's name, with `-` for `_`. A command ends by returning, by
`raise typer.Exit(code)`, or by an exception that `errors` turns into one line and an exit code.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
import typer.main

from emulator import __version__


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"isr {__version__}")
        raise typer.Exit


def isr(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Kafka's ZooKeeper-era replication control plane, emulated.

    The same code runs a cluster's ISR handling and controller against a real ZooKeeper server or in
    virtual time, and shows what happened and why.

    \b
      isr scenarios                                    list the scenarios
      isr run shrink-and-expand --zookeeper simulated  play one in virtual time
      isr run shrink-and-expand                        play it on a real ZooKeeper
      isr show latest                                  show the run again
      isr play shrink-and-expand                       play the cluster by hand

    With --json a command prints JSON on standard output and everything else on standard error.

    Exit codes: 0 all expectations held (or nothing was expected), 1 one did not, 2 unknown, 64
    usage error, 70 internal or environment error.
    """


def build(named: str | None = None) -> typer.Typer:
    """The application with all commands, or with the command `named` alone if it exists: importing
    the others takes a second."""
    app = typer.Typer(
        name="isr",
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(isr)
    names = {m.name.strip("_").replace("_", "-"): m.name for m in pkgutil.iter_modules(__path__)}
    names.pop("parts")
    for name in [named] if named in names else sorted(names):
        module = importlib.import_module(f"{__name__}.{names[name]}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name=name, **getattr(module, "OPTIONS", {}))(module.command)
    return app


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    from emulator.cli.parts import errors

    try:
        command = typer.main.get_command(build(next(iter(arguments), None)))
        code = command.main(list(arguments) or ["--help"], prog_name="isr", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001
        return errors.report_error(error)
    return code if isinstance(code, int) else 0


def main() -> None:
    """The console script."""
    sys.exit(execute(sys.argv[1:]))
