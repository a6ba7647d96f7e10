"""docs/hazards-told.md: every command that it shows prints what it claims, and each hazard breaks
without its cure and not with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.pages.transcripts import alike, commands, output_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hazards-told.md"
TOLD = list(commands(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("command", "claimed"), TOLD, ids=[command for command, _ in TOLD])
def test_its_commands_print_what_it_claims(command: str, claimed: str, tmp_path: Path) -> None:
    assert alike(claimed, output_of(command, tmp_path)), "make pages"


def test_each_is_broken_marked_and_cured() -> None:
    assert len(TOLD) == 3
    for _, output in TOLD:
        assert "BROKEN" in output and "\n ✗ " in output
        assert "no invariant is violated" in output and "verdict        held" in output
