"""`isr` in this process, as a user calls it."""

from __future__ import annotations

import pytest

from emulator import cli

Told = tuple[int, str, str]
"""Exit code, standard output, standard error."""

PLAYS = 4
UNKNOWN = 2
WAS_LATE = ("verdict   unknown: scheduling was delayed", '"kernel_was_late":true')
"""What a command says of a play for which the machine was too slow, as a text and as JSON."""


class Isr:
    """The command line; whatever happens, no traceback is shown. A play that the machine was too
    slow for is played again."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Told:
        for _ in range(PLAYS):
            code = cli.execute([str(argument) for argument in arguments])
            out, err = self._capsys.readouterr()
            assert "Traceback" not in out + err
            if code != UNKNOWN or not any(late in out + err for late in WAS_LATE):
                break
        return code, out, err

    def fails(self, *arguments: object) -> tuple[int, str]:
        """It ends with nothing but one line on standard error."""
        code, _, err = self(*arguments)
        lines = [line for line in err.splitlines() if line.startswith("isr: ")]
        assert len(lines) == 1, err
        return code, lines[0]
