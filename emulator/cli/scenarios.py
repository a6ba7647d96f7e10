"""`isr scenarios [NAME]`: the scenarios that come with the emulator."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from emulator.cli.parts.options import JsonOption, print_json
from emulator.scenario import shipped
from emulator.scenario.errors import UserError, instead_of
from emulator.scenario.expectations.base import forms
from emulator.scenario.load import load
from emulator.scenario.units import show_us


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The scenario to print in full.")
    ] = None,
    expectations: Annotated[
        bool, typer.Option("--expectations", help="List the sentences that `expect` accepts.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the scenarios that come with the emulator, or print one.

    \b
      isr scenarios brief-lag
    """
    known = shipped.shipped()
    if expectations:
        shown = {name: [form.shown for form in of_kind] for name, of_kind in forms().items()}
        if as_json:
            print_json({"expectations": shown})
            return
        for of_kind in shown.values():
            for form in of_kind:
                typer.echo(form)
    elif name is not None:
        if name not in known:
            raise UserError(f"unknown scenario {name}; {instead_of(name, known)}")
        typer.echo(known[name].read_text(encoding="utf-8"), nl=False)
    elif as_json:
        print_json(
            {
                "scenarios": [
                    {
                        "name": key,
                        "about": one.about,
                        "profile": one.profile,
                        "run_ms": one.duration_us // 1000,
                        "race_free": one.race_free,
                        "file": one.source,
                    }
                    for key, one in ((key, load(path)) for key, path in known.items())
                ]
            }
        )
    else:
        table = Table.grid(padding=(0, 2))
        for key, path in known.items():
            one = load(path)
            table.add_row(key, show_us(one.duration_us), one.about)
        Console(highlight=False).print(table)
