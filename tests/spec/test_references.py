"""Every reference in the tree leads somewhere: to a section or a code of docs/spec, to a file, to a
heading of another page.

References to the specification are written `spec §4.2` (or `§4.2` alone), and `H12`, `B5`, `S8`,
`L9` for the hazards and predicates that have such a code. Each has a heading in docs/spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.files import paths_under

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "docs" / "spec"
SECTION = re.compile(r"§ ?(\d+(?:\.\d+)*)")
CODE = re.compile(r"(?<![\w.#&/{-])([HBSL]\d{1,2})(?![\w=:(}])")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# `emulator/kafka/node.py`, `zk/client/codec`, `zk/client/codec.decode`, not Kafka's `zk/X.scala`.
PATH = re.compile(
    r"`((?:emulator|tests|tools|docs|scenarios|zk/(?:client|model|real|scala))/[\w./-]++)(?!<)"
)
# Where H1 or L1 means something else: a broker's latency, a title of HTML, a column of a data file.
CODES_ELSEWHERE = ("tests/recordings/", "emulator/analysis/report", "emulator/view/")


@cache
def texts() -> dict[str, str]:
    """Every text of the tree that people write, by path."""
    kept = {}
    for path in paths_under(ROOT):
        if path.endswith((".py", ".md", ".yaml", ".toml")) and "recordings/" not in path:
            kept[path] = (ROOT / path).read_text(encoding="utf-8")
    return kept


@cache
def headings(path: Path) -> tuple[str, ...]:
    return tuple(HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8"))))


def spec_headings() -> Iterator[str]:
    yield from headings(SPEC / "kafka-control-plane.md")
    yield from headings(SPEC / "hazards.md")


@cache
def sections() -> frozenset[str]:
    """The numbers of both pages' sections: `4`, `4.2`."""
    numbers = (re.match(r"(\d+(?:\.\d+)*)\.? ", heading) for heading in spec_headings())
    return frozenset(match[1] for match in numbers if match)


@cache
def codes() -> frozenset[str]:
    matches = (re.match(r"([HBSL]\d+)\b", heading) for heading in spec_headings())
    return frozenset(match[1] for match in matches if match)


def anchor(heading: str) -> str:
    """GitHub's anchor of a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def lines_of(path: str) -> Iterator[tuple[int, str]]:
    return enumerate(texts()[path].splitlines(), 1)


def test_each_section_that_is_cited_is_a_heading() -> None:
    dangling = [
        f"{path}:{number} §{section}"
        for path in texts()
        for number, line in lines_of(path)
        for section in SECTION.findall(line)
        if section not in sections()
    ]
    assert not dangling


def test_each_code_that_is_cited_is_a_heading() -> None:
    dangling = [
        f"{path}:{number} {code}"
        for path in texts()
        if not path.startswith(CODES_ELSEWHERE)
        for number, line in lines_of(path)
        for code in CODE.findall(line)
        if code not in codes()
    ]
    assert not dangling


@pytest.mark.parametrize("page", sorted(p for p in texts() if p.endswith(".md")))
def test_each_link_leads_to_a_file_and_a_heading(page: str) -> None:
    for target in LINK.findall(FENCE.sub("", texts()[page])):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        path = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert path.exists(), target
        if fragment and path.suffix == ".md":
            assert fragment in {anchor(h) for h in headings(path)}, target


def test_each_path_that_a_page_names_is_there() -> None:
    missing = [
        f"{page}: {name}"
        for page, text in texts().items()
        if page.endswith(".md") and not page.startswith("docs/adr/")
        for name in PATH.findall(FENCE.sub("", text))
        if not is_there(name.rstrip("."))
    ]
    assert not missing


def is_there(name: str) -> bool:
    """A file or folder, a module without its `.py`, or something in one."""
    module = re.sub(r"(\.[A-Za-z_]\w*)+$", "", name)
    return any((ROOT / path).exists() for path in (name, f"{name}.py", f"{module}.py"))


def test_each_of_the_twenty_questions_has_its_answer_in_the_file_it_names() -> None:
    rows = re.findall(
        r"^\| .+ \| `([\w/.]+\.py)` \| `(\w+)` \|$", texts()["CONTRIBUTING.md"], re.MULTILINE
    )
    assert len(rows) == 20
    for file, name in rows:
        text = texts()[file]
        assert re.search(
            rf"^\s*(async def|def|class) {name}\b|^{name} ?[:=]", text, re.MULTILINE
        ), name
