"""`isr run --check`: the same run in two processes with different hash seeds.

Python orders sets of strings by a hash with a random seed per process (PYTHONHASHSEED); memory
addresses, imports and caches differ too. Dependence on any of these shows as a difference. The two
hash seeds are derived from the run's own seed, so that a check is repeatable.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import msgspec
import typer
from rich.console import Console

import emulator
from emulator.cli.parts.errors import FAULT
from emulator.cli.parts.options import print_json
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.run_report import EXIT_CODES, report
from emulator.cli.parts.trace_difference import difference_json, difference_lines
from emulator.kernel.rng import mix
from emulator.runs.run_directory import TRACE
from emulator.runs.session import Played
from emulator.runs.summary import Summary
from emulator.trace.difference import Compared, compare_traces
from emulator.trace.reader import read_events
from zk.real.child import Child

PROGRAM = ("-c", "from emulator.cli import main; main()")
NAMES = ("first", "second")
DIFFERS = 1
_PAUSE_S = 0.05


class Checked(NamedTuple):
    """Two finished runs; `second_directory` is kept only if they differ."""

    performed: Played
    compared: Compared
    hash_seeds: tuple[int, int]
    second_directory: Path | None

    @property
    def exit_code(self) -> int:
        """1 if they differ, otherwise the verdict's."""
        differs = self.compared.difference is not None
        return DIFFERS if differs else EXIT_CODES[self.performed.summary.verdict]

    def report(self, console: Console, repeat: str, *, as_json: bool, quiet: bool) -> None:
        """Report the first run, then whether the second is identical."""
        report(console, self.performed, repeat, quiet=quiet)
        runs = f"two processes (PYTHONHASHSEED {' and '.join(map(str, self.hash_seeds))})"
        if self.compared.difference is None:
            lines = [f"checked        the same {self.compared.events:,} events in {runs}"]
        else:
            lines = [
                f"checked        NOT the same in {runs}; the second is in {self.second_directory}"
            ]
            lines += difference_lines(self.compared, NAMES)
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)
        if as_json:
            check = {
                "hash_seeds": self.hash_seeds,
                **difference_json(self.compared, NAMES),
                "second_run_directory": str(self.second_directory)
                if self.second_directory
                else None,
            }
            print_json(msgspec.structs.asdict(self.performed.summary) | {"check": check})


def check(words: Sequence[str], seed: int, out: Path, *, shown: bool) -> Checked:
    """Perform `isr run WORDS` twice: once below `out`, once in a temporary directory that is kept
    only if the runs differ."""
    seeds = hash_seeds(seed)
    ours = str(Path(emulator.__file__).parents[1])
    path = os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))
    with ExitStack() as cleanup:
        scratch = Path(mkdtemp(prefix="isr-check-"))
        cleanup.callback(
            lambda: None if second_directory else shutil.rmtree(scratch, ignore_errors=True)
        )
        second_directory: Path | None = None
        twins = []
        for name, hash_seed, to in zip(NAMES, seeds, (out, scratch), strict=True):
            options = ("--out", str(to), "--json", "--quiet")
            command = [sys.executable, *PROGRAM, "run", *words, *options]
            environment = {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path}
            twins.append(Child(command, Path.cwd(), scratch / name, environment))
            cleanup.callback(twins[-1].kill)
        began_s = time.monotonic()
        with ProgressLine(shown=shown) as line:
            while not all(twin.has_ended for twin in twins):
                line.update(f"two processes, {time.monotonic() - began_s:.1f} s")
                time.sleep(_PAUSE_S)
        first, second = (
            _summary(twin, scratch / of) for of, twin in zip(NAMES, twins, strict=True)
        )
        traces = [Path(summary.run_directory) / TRACE for summary in (first, second)]
        compared = compare_traces(*traces)
        if compared.difference is not None:
            second_directory = Path(second.run_directory)
        performed = Played(list(read_events(traces[0])), first, traces[0].parent)
        return Checked(performed, compared, seeds, second_directory)


def _summary(twin: Child, output: Path) -> Summary:
    """The summary of the finished run. If it failed, this command exits like it did."""
    text = output.read_text(errors="replace").strip()
    code = twin.wait(0)
    if code in EXIT_CODES.values():
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text.rpartition("\n")[2], type=Summary)
    typer.echo(text, err=True)
    raise typer.Exit(code or FAULT)


def hash_seeds(seed: int) -> tuple[int, int]:
    """Two different values of PYTHONHASHSEED."""
    first = mix(seed) >> 32
    return first, first ^ (1 + (mix(seed + 1) >> 33))
