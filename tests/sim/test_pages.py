"""README.md and docs/explore.md: every command that they show prints what they claim.

The other pages of `make pages`: `test_misconceptions`, `test_hazards_told`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.pages.transcripts import alike, commands, filled, output_of, write_files

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/learn/tutorial.md", "docs/explore.md"])
def test_its_commands_print_what_it_claims(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    write_files(text, tmp_path)
    shown = list(commands(text))
    assert shown
    wrong = {}
    for command, claimed in shown:
        seen = output_of(command, tmp_path)
        if not alike(claimed, seen):
            wrong[command] = seen
    assert wrong == {}, "is the page still true? then `make pages` fills in what is printed now"


def test_a_file_of_the_page_is_there_for_its_commands(tmp_path: Path) -> None:
    write_files("```yaml\n# a.yaml\nrun: 1s\n```\n```yaml\nrun: 2s\n```\n", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
    assert (tmp_path / "a.yaml").read_text() == "run: 1s\n"


def test_what_is_left_out_may_be_anything_and_stays_left_out() -> None:
    assert alike("a 1\n...\nz\n", "a 2\nb\nc\nz\n")
    assert alike("...\nz\n", "a 2\nb\nz\n")
    assert not alike("a 1\n...\nz\n", "a 2\nb\nc\n")
    page = "```console\n$ isr x\na\n...\nz\n```"
    assert filled(page, lambda _: "a\nb\nz\n") == page
    assert filled(page, lambda _: "y\n") == "```console\n$ isr x\ny\n```"
