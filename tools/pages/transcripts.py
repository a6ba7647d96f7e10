"""Commands that a page shows, and what they print: read from it, run, compared, filled in.

Owns the form: in a fenced block each line that begins with `$ ` is a command, and what follows is
its output. A page's commands are run one after the other in one directory, in virtual time, so that
a later one can look at an earlier one's run. Numbers are compared as numbers that are there: a
scenario's microseconds move whenever a latency's table does, what the page claims must not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from emulator import cli

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d,.]*(?<![,.])")
_ELSEWHERE = ("run directory", "repeat it")
"""Lines that say where a run is: another place each time."""

PROMPT = "$ "


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
    said, complaint = StringIO(), StringIO()
    with chdir(directory), redirect_stdout(said), redirect_stderr(complaint):
        code = cli.execute(words[1:])
    assert code in (0, 1), f"{command}: exit code {code}: {complaint.getvalue()}"
    lines = [line.rstrip() for line in said.getvalue().splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith(_ELSEWHERE))


def alike(claimed: str, seen: str) -> bool:
    """The same words, in the same order, with numbers in the same places."""
    return _words(claimed) == _words(seen)


def _words(text: str) -> str:
    return " ".join(_NUMBER.sub("N", text).split())


def filled(page: str, run: Callable[[str], str]) -> str:
    """The page with what its commands print now."""

    def fill(block: re.Match[str]) -> str:
        shown = "".join(f"{PROMPT}{command}\n{run(command)}" for command, _ in commands(block[0]))
        return f"```console\n{shown}```"

    return _BLOCK.sub(fill, page)
