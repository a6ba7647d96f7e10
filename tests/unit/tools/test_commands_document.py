"""The page of commands is made from the commands themselves."""

from __future__ import annotations

from pathlib import Path

from tools.documents.commands import markdown

DOCUMENT = Path(__file__).parents[3] / "docs" / "commands.md"


def test_the_page_shows_the_help_of_every_command() -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    assert page == markdown(), "run: python -m tools.documents.commands > docs/commands.md"
