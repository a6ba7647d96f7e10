"""`isr explore async-isr`: all states of asynchronous ISR updates, compared with the published
model."""

from __future__ import annotations

import time

import msgspec
import typer

from emulator.cli.parts.options import print_json
from emulator.cli.parts.progress import ProgressLine
from emulator.scenario.errors import UserError
from emulator.scenario.version import VersionOptions, read_version
from emulator.search.async_isr import published
from emulator.search.async_isr.search import Explorer
from emulator.search.async_isr.steps import Scope, Steps

MODEL = "async-isr"
PROFILE = "2.7"
HELD, BROKEN = 0, 1


def explore_async_isr(chosen: VersionOptions, *, as_json: bool) -> int:
    """Search and report. Returns the exit code."""
    version = read_version(
        {}, chosen if chosen.profile else msgspec.structs.replace(chosen, profile=PROFILE)
    )
    profile = version.of(version.profile)
    if "rpc" not in profile.propagations:
        raise UserError(f"--profile {profile.name}: has no AlterIsr; use 2.7 or later")
    scope, began_s = Scope(), time.monotonic()
    with ProgressLine() as line:

        def on_progress(states: int) -> None:
            line.update(lambda: f"{states:,} states")

        result = Explorer(Steps(scope, profile)).explore(on_progress=on_progress)
        took_s = time.monotonic() - began_s
        beside = len(published.states(scope, on_progress)) if result.complete else None
    if as_json:
        # `published`: the number of states of the published model; null with a counterexample.
        print_json(
            {
                "scope": scope,
                "profile": profile.name,
                **msgspec.structs.asdict(result),
                "seconds": round(took_s, 3),
                "published": beside,
            }
        )
        return BROKEN if result.counterexample else HELD
    typer.echo(
        f"scope      {scope.replicas} replicas, {scope.versions} versions, "
        f"{scope.offsets} offsets, rules of {profile.name}"
    )
    whole = "complete" if result.complete else "up to the first counterexample"
    typer.echo(
        f"states     {result.states:,}, {result.transitions:,} transitions, depth {result.depth}, "
        f"{whole}, {took_s:.1f} s"
    )
    if beside is not None:
        typer.echo(f"published  {beside:,} states (AsyncIsr.tla; docs/explore.md says why)")
    for number, words in enumerate(result.counterexample, 1):
        typer.echo(f"  {number:>2}  {words}")
    holds = "violated" if result.counterexample else "holds in every state"
    typer.echo(f"verdict    ValidHighWatermark {holds}")
    return BROKEN if result.counterexample else HELD
