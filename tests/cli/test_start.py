"""A command imports only what it needs, not the imports of all commands."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.command import Isr

IMPORTED = (
    "import sys; from emulator import cli; cli.execute(sys.argv[1:]); "
    "print(sorted(n for n in sys.modules if n.startswith('emulator.cli.')))"
)


def imported(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def test_a_command_does_not_wait_for_what_others_import() -> None:
    assert "'emulator.cli.show'" in imported("show", "--help")
    assert "'emulator.cli.broker'" not in imported("show", "--help")
    assert "'emulator.cli.broker'" in imported("--help")


@pytest.mark.parametrize("name", ["shwo", "errors", ""])
def test_what_is_no_command_is_told_so(isr: Isr, name: str) -> None:
    """`errors` is a module of the package and no command."""
    code, line = isr.fails(name)
    assert code == 64
    assert f"No such command '{name}'" in line
