"""Identifiers, messages and paragraphs drawn at random, to be judged one by one.

    python -m tools.documents.word_sample 20261126 > docs/words/sample.csv

The last column is empty: a reader who knows Kafka writes there what stopped him.
"""

from __future__ import annotations

import ast
import csv
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {"identifier": 200, "message": 100, "paragraph": 40}


def _sources() -> Iterator[tuple[str, ast.Module]]:
    for room in ("emulator", "zk"):
        for path in sorted((ROOT / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def identifiers() -> set[tuple[str, str]]:
    """File and name of functions, classes, parameters, variables and attributes."""
    names = set()
    for path, tree in _sources():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    names.add((path, name))
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    names.add((path, name))
    return {one for one in names if len(one[1]) > 2 and not one[1].startswith("__")}


def messages() -> set[tuple[str, str]]:
    """File and text of strings of three words and more that are no docstrings."""
    texts = set()
    for path, tree in _sources():
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=str(text)) if id(node) not in docstrings:
                    texts.add((path, text.strip()))
                case ast.JoinedStr(values=values):
                    parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in values)
                    texts.add((path, "".join(map(str, parts)).strip()))
    return {one for one in texts if len(one[1].split()) >= 3}


def paragraphs() -> set[tuple[str, str]]:
    """Page and text of paragraphs of twelve words and more, the specification left out."""
    texts = set()
    for path in [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md")]:
        page = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for paragraph in re.split(r"\n\s*\n", page):
            text = " ".join(paragraph.split())
            if len(text.split()) >= 12 and not text.startswith(("|", "#", "!", "<")):
                texts.add((str(path.relative_to(ROOT)), text))
    return {one for one in texts if not one[0].startswith("docs/spec/")}


def main(seed: int) -> None:
    drawing, out = random.Random(seed), csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["kind", "place", "text", "a reader stumbles"])
    for kind, of in zip(COUNTS, (identifiers(), messages(), paragraphs()), strict=True):
        for place, text in drawing.sample(sorted(of), COUNTS[kind]):
            out.writerow([kind, place, text, ""])


if __name__ == "__main__":
    main(int(sys.argv[1]))
