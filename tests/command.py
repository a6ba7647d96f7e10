"""`isr` in this process, as a user calls it."""

from __future__ import annotations

import pytest

from emulator import cli

Told = tuple[int, str, str]
"""Exit code, standard output, standard error."""


class Isr:
    """The command line; whatever happens, no traceback is shown."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Told:
        code = cli.execute([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    def fails(self, *arguments: object) -> tuple[int, str]:
        """It ends with nothing but one line on standard error."""
        code, _, err = self(*arguments)
        lines = [line for line in err.splitlines() if line.startswith("isr: ")]
        assert len(lines) == 1, err
        return code, lines[0]
