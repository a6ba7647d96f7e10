"""`isr scenarios [NAME]`: what is shipped, and each in full."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from emulator.scenario import shipped
from emulator.scenario.errors import UserError, instead_of
from emulator.scenario.expectations.base import forms
from emulator.scenario.load import LoadedScenario, load
from emulator.scenario.units import show_us


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Print this one in full.")
    ] = None,
    expectations: Annotated[
        bool, typer.Option("--expectations", help="The sentences that expect can have.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """List the shipped scenarios, or print one."""
    if expectations:
        _expectations(as_json=as_json)
    elif name is not None:
        typer.echo(_text_of(name), nl=False)
    else:
        _list({name: load(path) for name, path in shipped.shipped().items()}, as_json=as_json)


def _text_of(name: str) -> str:
    known = shipped.shipped()
    if name not in known:
        raise UserError(f"there is no scenario {name}; {instead_of(name, known)}")
    return known[name].read_text(encoding="utf-8")


def _list(loaded: dict[str, LoadedScenario], *, as_json: bool) -> None:
    if as_json:
        entries = [
            {
                "name": name,
                "about": one.about,
                "profile": one.profile,
                "run_ms": one.duration_us // 1000,
                "race_free": one.race_free,
                "file": one.source,
            }
            for name, one in loaded.items()
        ]
        typer.echo(msgspec.json.encode({"scenarios": entries}))
        return
    table = Table.grid(padding=(0, 2))
    for name, one in loaded.items():
        table.add_row(name, show_us(one.duration_us), one.about)
    Console(highlight=False).print(table)


def _expectations(*, as_json: bool) -> None:
    shown = {name: [form.shown for form in of_kind] for name, of_kind in forms().items()}
    if as_json:
        typer.echo(msgspec.json.encode({"expectations": shown}))
        return
    for of_kind in shown.values():
        for form in of_kind:
            typer.echo(form)
