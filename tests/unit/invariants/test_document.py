"""The document of the invariants is made from them."""

from __future__ import annotations

from pathlib import Path

from tools.documents.invariants import by_name, document

DOCUMENT = Path(__file__).parents[3] / "docs" / "invariants.md"


def test_the_document_is_made_from_the_invariants() -> None:
    made = document()
    assert DOCUMENT.read_text(encoding="utf-8") == made, (
        "python -m tools.documents.invariants > docs/invariants.md"
    )


def test_every_predicate_of_the_list_has_an_invariant() -> None:
    assert [name for name, kinds in by_name().items() if not kinds] == []
