"""`docs/commands.md`: the help of every command, as a terminal of 80 columns shows it.

    python -m tools.documents.commands > docs/commands.md

A test holds the page to the commands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from unittest.mock import patch

from emulator import cli

HEAD = """\
# Commands

`isr COMMAND --help` prints the same. RUN is `latest`, a scenario's name (its newest run),
`SCENARIO/RUN`, or a directory.

Exit codes of every command: 0 all expectations held, 1 one did not, 2 unknown, 64 usage error, 70
internal or environment error.
"""
SUBCOMMANDS = re.compile(r"^Commands:\n((?:  .*\n)+)", re.MULTILINE)


def help_of(*words: str) -> str:
    """What `isr WORDS --help` prints."""
    text = StringIO()
    with redirect_stdout(text), patch.dict(os.environ, {"COLUMNS": "80"}):
        cli.execute([*words, "--help"])
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip()


def sections(*words: str) -> Iterator[str]:
    """The help of this command, or of each command below it."""
    text = help_of(*words)
    below = SUBCOMMANDS.search(f"{text}\n")
    if below is None or words:
        yield f"## isr {' '.join(words)}\n\n```\n{text}\n```\n"
    if below is not None:
        for name in re.findall(r"^  (\S+)", below[1], re.MULTILINE):
            yield from sections(*words, name)


def markdown() -> str:
    return "\n".join([HEAD, *sections()])


if __name__ == "__main__":
    print(markdown(), end="")
