"""docs/misconceptions.md: every command that it shows prints what it claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.pages.transcripts import alike, commands, filled, output_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "misconceptions.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs are looked at by later commands."""
    return tmp_path_factory.mktemp("pages")


@pytest.mark.slow
@pytest.mark.xdist_group("misconceptions")
def test_its_commands_print_what_it_claims(directory: Path) -> None:
    wrong = {}
    for command, claimed in commands(TEXT):
        seen = output_of(command, directory)
        if not alike(claimed, seen):
            wrong[command] = seen
    assert wrong == {}, "is the page still true? then `make pages` fills in what is printed now"


def test_each_misconception_has_a_run_that_refutes_it() -> None:
    parts = TEXT.split("\n## ")[1:]
    assert len(parts) >= 10
    assert [part.splitlines()[0] for part in parts if not list(commands(part))] == []


def test_every_claim_that_a_run_makes_held() -> None:
    told = [line for _, output in commands(TEXT) for line in output.splitlines()]
    assert not [line for line in told if line.startswith(("NOT HELD", "unknown"))]
    assert any(line.startswith("held") for line in told)


def test_numbers_may_differ_and_words_may_not() -> None:
    assert alike("LEO 81 of 107,\n  2,207 ms ago", "LEO 5 of 1,107, 9 ms ago")
    assert not alike("LEO 81: out of sync", "LEO 81: in sync")
    assert not alike("quiet for 5,820 ms", "quiet for long")


def test_a_page_is_filled_with_what_is_printed() -> None:
    page = "Said:\n\n```console\n$ isr a\nold\n$ isr b\n```\n\n```\n$ isr c\n```\n"
    now = "$ isr a\nisr a it is\n$ isr b\nisr b it is\n"
    wanted = page.replace("$ isr a\nold\n$ isr b\n", now)
    assert filled(page, lambda command: f"{command} it is\n") == wanted
