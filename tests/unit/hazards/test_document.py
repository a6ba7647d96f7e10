"""docs/hazards.md, and what was seen: all of the catalogue, and as it should be."""

from __future__ import annotations

from pathlib import Path

from emulator.hazards.entry import catalogue
from emulator.hazards.state import seen
from tools.documents.hazards import document

PAGE = Path(__file__).resolve().parents[3] / "docs" / "hazards.md"


def test_the_page_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(), "make hazards"


def test_every_hazard_was_seen_and_its_cure_held() -> None:
    assert list(seen()) == sorted(catalogue()), "make hazards"
    assert [name for name, one in seen().items() if not one.is_as_expected or one.needless] == []
