"""The rules of words: names, phrases and sentences, over code, pages and what users read.

A name is a noun or a verb phrase of the field; a text is a plain sentence. What went is listed here
and does not come back.

    python -m tests.house.words       all findings, and how many there are of each
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.files import House, Source, read_house
from tests.house.rules import prose_of

# Participles and riddles: say what it is (`matches`, `response`, `expected`, `present`).
NAMES_THAT_WENT = frozenset(
    (
        "told",
        "tell",
        "asked",
        "ask",
        "found",
        "said",
        "wanted",
        "led",
        "given",
        "noted",
        "taken",
        "whom",
        "anew",
        "there",
        "fine",
        "apart",
        "against",
        "because",
        "telling",
        "growing",
        "sometimes",
        "kept",
        "smaller",
        "strike",
        "possible",
        "way",
        "manners",
        "stir",
        "rest",
        "stands",
        "surroundings",
        "stimulus",
        "stimuli",
        "stretch",
        "leg",
        "portfolio",
        "canary",
        "passage",
        "tally",
        "stage",
        "in_step",
        "tells_nothing",
        "led_by",
        "cause_links",
        "flight",
        "untold_death",
        "unchecked_member",
    )
)
PHRASES_THAT_WENT = tuple(
    re.compile(rf"\b{phrase}\b", re.IGNORECASE)
    for phrase in (
        r"anew",
        r"whoever",
        r"whom",
        r"(?:is|are|was|were|be|been|being) told",
        r"stands? still",
        r"nobody's",
        r"overtaken on the way",
        r"what was asked for",
        r"fault of ours",
        r"broken off",
        r"stimul(?:us|i)",
        r"canar(?:y|ies)",
        r"no whole number",
        r"1 seeds",
        r"collections? of garbage",
        r"untold",
        r"is wanted",
        r"is no time",
        r"no YAML",
    )
)
LONGEST_SENTENCE = 45
"""Words in a sentence of a page. The aim is a median of 16 and 95 of 100 below 30."""

OWN = ("tests/house/words.py", "tests/test_house.py", "CHANGELOG.md", "docs/adr/")
# A recording is in the exchange format of the judge; it has a name for actions of its own. Stored
# runs have an expectation in words of before.
KEEPS = re.compile(
    r"^hw of .* stands still .*|stimulus to |stimulus_busy|"
    r"^stimul(?:us|i)$|\"stimul(?:us|i)\"|`stimulus`"
)


def names_are_of_the_field(house: House) -> Iterator[str]:
    for source in house.python:
        if source.path.startswith("tests/"):
            continue
        for node, name in bound_names(source):
            if name.strip("_").lower() in NAMES_THAT_WENT:
                yield source.at(node, f"`{name}` is a word that went")


def bound_names(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Names that the file gives: of functions, classes, parameters, variables and attributes."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node, node.name
        if isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node, node.attr


def texts_are_plain(house: House) -> Iterator[str]:
    for path, number, text in texts(house):
        for phrase in PHRASES_THAT_WENT:
            if match := phrase.search(KEEPS.sub("", text)):
                yield f"{path}:{number} `{match.group()}`"


def texts(house: House) -> Iterator[tuple[str, int, str]]:
    """Comments, docstrings and strings of the product; lines of pages and scenarios."""
    for source in house.product:
        for number, text in prose_of(source):
            yield source.path, number, text
        docstrings = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
        for node in source.nodes:
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield source.path, node.lineno, node.value
    for path, page in sorted(house.files.items()):
        is_page = path.endswith(".md") and not path.startswith(("tests/", "docs/spec/"))
        is_scenario = path.endswith(".yaml") and path.startswith(("scenarios/", "emulator/"))
        if page and (is_page or is_scenario) and not path.startswith(OWN):
            for number, line in enumerate(page.splitlines(), 1):
                yield path, number, line


def sentences_are_short(house: House) -> Iterator[str]:
    for path, page in sorted(house.files.items()):
        if not page or not path.endswith(".md") or path.startswith(("tests/", "docs/spec/", *OWN)):
            continue
        for sentence in sentences(page):
            words = len(sentence.split())
            if words > LONGEST_SENTENCE:
                yield f"{path} {words} words: {sentence[:60]}"


def sentences(page: str) -> list[str]:
    """The sentences of a page's prose: without code, tables, headings and pictures."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^(?:\||#|!|<).*$", "", prose, flags=re.MULTILINE)
    prose = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", prose, flags=re.MULTILINE)
    parts = re.split(r"(?<=[.!?:;])\s+|\n\s*\n", prose)
    return [" ".join(part.split()) for part in parts if len(part.split()) > 2]


RULES = (names_are_of_the_field, texts_are_plain, sentences_are_short)

if __name__ == "__main__":
    project = read_house(Path(__file__).resolve().parents[2])
    for rule in RULES:
        findings = sorted(set(rule(project)))
        print(*findings, sep="\n")
        files = Counter(finding.split(":")[0].split(" ")[0] for finding in findings)
        print(f"== {rule.__name__}: {len(findings)} in {len(files)} files; most in", end=" ")
        print(*(f"{path} {count}" for path, count in files.most_common(5)), sep=", ")
