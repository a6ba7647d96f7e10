"""`isr profiles`: the Kafka versions, their features, and the differences of two of them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from emulator.cli.parts.options import JsonOption, print_json, report_console
from emulator.kafka.profiles.base import Profile, profiles
from emulator.kafka.profiles.differences import differences, features
from emulator.kafka.profiles.guards.base import guards
from emulator.scenario.errors import UserError
from emulator.scenario.version import unknown_profile

app = typer.Typer(rich_markup_mode=None)
Json = JsonOption


@app.callback(invoke_without_command=True)
def listed(context: typer.Context, as_json: Json = False) -> None:
    """List the Kafka versions (for --profile) and their guards (for --guard).

    \b
      isr profiles
      isr profiles diff 2.4 2.6
    """
    if context.invoked_subcommand is not None:
        return
    if as_json:
        print_json(
            {
                "profiles": [
                    {
                        "name": profile.name,
                        "release": profile.release,
                        "citation": profile.citation,
                        "propagations": profile.propagations,
                        "controller_threads": profile.controller_threads,
                        "zookeeper_client": profile.zookeeper_client,
                        "guards": [n for n, guard in guards().items() if guard in profile.guards],
                        "settings": dict(profile.defaults),
                        "request_versions": dict(profile.request_versions),
                    }
                    for profile in profiles().values()
                ],
                "guards": [
                    {
                        key: getattr(guard, key)
                        for key in ("name", "kafka", "since", "does", "citation")
                    }
                    for guard in guards().values()
                ],
            }
        )
        return
    console = report_console()
    table = _grid()
    for name, profile in profiles().items():
        table.add_row(name, profile.release, "; ".join(features(profile)))
    console.print(table)
    console.print()
    guard_table = _grid()
    for guard in guards().values():
        guard_table.add_row(guard.name, guard.kafka, f"since {guard.since}", guard.does)
    console.print(guard_table)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A version, such as 2.4.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another version, such as 2.6.")],
    as_json: Json = False,
) -> None:
    """Show the differences of two Kafka versions.

    Compares settings, guards, strategies and request versions.

    \b
      isr profiles diff 2.4 2.6
    """
    rows = differences(_profile(a), _profile(b))
    if as_json:
        print_json({"a": a, "b": b, "differences": rows})
        return
    table = _grid()
    table.add_row("", f"[bold]{a}[/]", f"[bold]{b}[/]", "")
    for one in rows:
        table.add_row(f"{one.kind} {one.name}", one.a, one.b, one.why)
    report_console().print(table)


def _grid() -> Table:
    """A table whose first column never wraps."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    return grid


def _profile(name: str) -> Profile:
    problem = unknown_profile(name)
    if problem:
        raise UserError(problem)
    return profiles()[name]
