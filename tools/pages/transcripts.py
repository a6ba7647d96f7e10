"""Commands that a page shows, and what they print: read from it, run, compared, filled in.

Owns the form: in a fenced block each line that begins with `$ ` is a command, and what follows is
its output. A page's commands are run one after the other in one directory, in virtual time, so that
a later one can look at an earlier one's run. A block of YAML whose first line is a comment with the
name of a file is that file there. A line `...` of an output stands for any lines. Numbers are
compared as numbers that are there: a scenario's microseconds move whenever a latency's table does,
what the page claims must not.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from emulator import cli

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d,.]*(?<![,.])")
_ELSEWHERE = re.compile(r"run directory|repeat it +isr run|\.\.\.$")
"""Lines that say where a run is: another place each time. And no line is left out of an output."""

_BY_THE_CLOCK = re.compile(r"in [\d.]+ s \([\d.]+ per second\)|\([\d.]+ per second\)|, [\d.]+ s$")
"""How long it took here: another figure each time."""

WIDTH = 100
PROMPT = "$ "
LEFT_OUT = "..."


def commands(page: str) -> Iterator[tuple[str, str]]:
    """Each command of the page, and the output that it claims."""
    for block in _BLOCK.finditer(page):
        for part in re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def output_of(command: str, directory: Path) -> str:
    """What `isr ...` prints, run in this process in that directory."""
    words = shlex.split(command)
    assert words[0] == "isr", f"{command}: no command of ours"
    printed, errors = StringIO(), StringIO()
    wide = patch.dict(os.environ, {"COLUMNS": str(WIDTH)})  # whatever the terminal here is
    with wide, chdir(directory), redirect_stdout(printed), redirect_stderr(errors):
        code = cli.execute(words[1:])
    assert code in (0, 1), f"{command}: exit code {code}: {errors.getvalue()}"
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    return "".join(f"{line}\n" for line in lines if not _ELSEWHERE.match(line))


def write_files(page: str, directory: Path) -> None:
    """Those that its commands read."""
    for name, text in _FILE.findall(page):
        (directory / name).write_text(text, encoding="utf-8")


def alike(claimed: str, seen: str) -> bool:
    """The same words, in the same order, with numbers in the same places; what is left out is
    anything."""
    parts = [re.escape(part) for part in _words(claimed).split(f" {LEFT_OUT} ")]
    return re.fullmatch(" .* ".join(parts), _words(seen)) is not None


def _words(text: str) -> str:
    """On one line, with a space before and behind each."""
    return f" {' '.join(_NUMBER.sub('N', text).split())} "


def filled(page: str, run: Callable[[str], str]) -> str:
    """The page with what its commands print now."""

    def fill(block: re.Match[str]) -> str:
        shown = []
        for command, claimed in commands(block[0]):
            seen = run(command)
            is_abridged = f"{LEFT_OUT}\n" in claimed and alike(claimed, seen)
            output = claimed if is_abridged else _keep_durations(claimed, seen)
            shown.append(f"{PROMPT}{command}\n{output}")
        return f"```console\n{''.join(shown)}```"

    return _BLOCK.sub(fill, page)


def _keep_durations(claimed: str, seen: str) -> str:
    """A line that differs by how long it took stays as it was."""
    before = {_BY_THE_CLOCK.sub("", line): line for line in claimed.splitlines()}
    lines = [before.get(_BY_THE_CLOCK.sub("", line), line) for line in seen.splitlines()]
    return "".join(f"{line}\n" for line in lines)
