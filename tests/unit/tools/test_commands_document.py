"""The page of commands is made from the commands themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tools.documents.commands import markdown

DOCUMENT = Path(__file__).parents[3] / "docs" / "commands.md"
page_of_now = cache(markdown)


def test_the_page_shows_the_help_of_every_command() -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    assert page == page_of_now(), "run: python -m tools.documents.commands > docs/commands.md"


def test_no_line_of_help_is_longer_than_80_columns() -> None:
    help_texts = page_of_now().split("```\n")[1::2]
    assert [line for text in help_texts for line in text.splitlines() if len(line) > 80] == []
