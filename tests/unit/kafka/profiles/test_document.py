"""The document of versions and guards says what the code says; no guard is there for nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from emulator.hazards.entry import PLACE
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.base import Guard, guards
from tools.documents.profiles import markdown

ROOT = Path(__file__).parents[4]
DOCUMENT = ROOT / "docs" / "profiles.md"
CORE = (
    *("emulator/kafka/broker", "emulator/kafka/controller", "emulator/kafka/coordinator"),
    "emulator/kafka/node.py",
    "emulator/worlds/storage",
)


def names_used(*places: str) -> set[str]:
    """Every name that the Python below these places uses."""
    found: set[str] = set()
    for place in places:
        top = ROOT / place
        for path in [top] if top.is_file() else top.rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found


def constants() -> dict[str, Guard]:
    """Guards by the name that code calls them by."""
    return {guard.name.upper().replace("-", "_"): guard for guard in guards().values()}


def test_the_document_is_made_from_the_registries() -> None:
    said = DOCUMENT.read_text(encoding="utf-8")
    assert said.rstrip() == markdown().rstrip(), "run: python -m tools.documents.profiles"


def test_every_version_and_every_guard_is_in_it() -> None:
    said = markdown()
    assert all(f"### {name} (" in said for name in profiles())
    assert all(f"| `{guard.name}` | {guard.kafka} |" in said for guard in guards().values())


def test_every_guard_is_asked_for_by_the_core() -> None:
    asked = names_used(*CORE)
    assert [name for name in constants() if name not in asked] == []


@pytest.mark.parametrize("guard", guards().values(), ids=str)
def test_every_guard_is_switched_by_some_test(guard: Guard) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    texts += [path.read_text(encoding="utf-8") for path in PLACE.glob("*.yaml")]
    constant = guard.name.upper().replace("-", "_")
    assert any(
        f'"{guard.name}' in text or f"{{{guard.name}: " in text or constant in text
        for text in texts
    )
