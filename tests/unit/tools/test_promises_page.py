"""The tests that docs/promises.md names are there, and its counts are theirs."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fuzz_decoders.decoders import DECODERS
from tests.fuzz_decoders.test_decoders import EXAMPLES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def test_every_test_that_it_names_is_there() -> None:
    places = re.findall(r"`(tests/[\w/.]+)`", PAGE)
    assert len(places) > 10
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_decoders_are_as_many_as_it_says() -> None:
    assert f"{len(DECODERS)} decoders" in PAGE
    assert f"{len(DECODERS) * EXAMPLES} inputs" in PAGE
