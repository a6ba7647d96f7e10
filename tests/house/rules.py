"""The house rules, one function each: a `House` in, findings (`file:line what`) out.

ruff, mypy and import-linter have theirs in pyproject.toml; those are not repeated here, except for
what the core may not import, which is shown with the line that does it.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.house.files import House, Source
from tests.house.set_iterations import SetIterations

NOT_IN_THE_CORE = frozenset(
    ("asyncio", "threading", "time", "random", "secrets", "uuid", "socket", "kazoo", "pyspark")
)
RANDOM_HOME = "emulator/kernel/rng.py"
KAZOO_HOME = "zk/real/kazoo_wire.py"

GUARDS, HAZARDS = "emulator/kafka/profiles/guards/", "emulator/invariants/known/"

# Put together so that this file does not hold them.
REGISTRY_HOSTS = tuple(
    host.replace(" ", ".")
    for host in (
        "pypi org",
        "pythonhosted org",
        "npmjs org",
        "crates io",
        "maven org",
        "maven apache org",
        "proxy golang org",
        "deb debian org",
        "security debian org",
    )
)
MACHINE_PATH = re.compile(r"(?<![\w.$})/*-])/(?:root|work)(?![\w-])")


# --- names ----------------------------------------------------------------------------------------


def modules_say_what_they_own(house: House) -> Iterator[str]:
    for source in house.python:
        if not ast.get_docstring(source.tree, clean=True):
            yield source.at(1, "no docstring at the head of the module")


def modules_have_names_of_their_own(house: House) -> Iterator[str]:
    vague = re.compile(r"(^|_)(helpers?|utils?)$|manager\d+$")
    for source in house.python:
        for part in PurePosixPath(source.path).with_suffix("").parts:
            if vague.search(part):
                yield source.at(1, f"`{part}` names nothing of Kafka's or ours")


# --- what is left undone --------------------------------------------------------------------------


def nothing_is_left_undone(house: House) -> Iterator[str]:
    skips = {"skip", "skipif", "xfail", "importorskip"}
    for source in house.python:
        undone = re.compile(r"\b(TODO|FIXME)\b")
        for number, text in prose_of(source) if undone.search(source.text) else ():
            if mark := undone.search(text):
                yield source.at(number, mark.group())
        for node in source.nodes:
            if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                yield source.at(node, node.id)
            elif isinstance(node, ast.Attribute) and node.attr in skips and is_pytest(node.value):
                yield source.at(node, f"pytest {node.attr}")
            elif isinstance(node, ast.ImportFrom) and node.module == "pytest":
                for alias in node.names:
                    if alias.name in skips:
                        yield source.at(node, f"pytest {alias.name}")


def prose_of(source: Source) -> Iterator[tuple[int, str]]:
    """Comments and docstrings, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in docstrings_of(source):
        yield node.lineno, str(node.value)


def docstrings_of(source: Source) -> Iterator[ast.Constant]:
    """Strings that stand alone: docstrings of modules, classes, functions and attributes."""
    for node in source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def is_pytest(node: ast.expr) -> bool:
    return ast.unparse(node) in ("pytest", "pytest.mark", "mark")


def no_test_sleeps(house: House) -> Iterator[str]:
    for source in house.python:
        if source.is_product:
            continue
        slept = {"time.sleep"}
        for node in source.nodes:
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                slept |= {a.asname or a.name for a in node.names if a.name == "sleep"}
        for node in source.nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) in slept:
                yield source.at(node, "sleeps: wait for what is to happen instead")


# --- what may be imported where -------------------------------------------------------------------


def chance_has_one_door(house: House) -> Iterator[str]:
    yield from strangers(house.product, "random", RANDOM_HOME)


def kazoo_has_one_door(house: House) -> Iterator[str]:
    yield from strangers(house.product, "kazoo", KAZOO_HOME)


def strangers(sources: list[Source], package: str, home: str) -> Iterator[str]:
    for source in sources:
        for node, imported in source.imports():
            if imported == package and source.path != home:
                yield source.at(node, f"imports {package}: only {home} does")


def the_core_knows_no_outside(house: House) -> Iterator[str]:
    for source in house.core:
        for node, imported in source.imports():
            if imported in NOT_IN_THE_CORE and (source.path, imported) != (RANDOM_HOME, "random"):
                yield source.at(node, f"the core imports {imported}")


# --- order ----------------------------------------------------------------------------------------


def no_order_comes_from_a_set(house: House) -> Iterator[str]:
    for source in house.core:
        iterations = SetIterations()
        iterations.visit(source.tree)
        for node in iterations.found:
            yield source.at(node, f"iterates over a set, `{ast.unparse(node)}`: sorted() first")


# --- what no file may know ------------------------------------------------------------------------


def no_registry_and_no_machine_is_named(house: House) -> Iterator[str]:
    for path, text in sorted(house.files.items()):
        for number, line in enumerate((text or "").splitlines(), 1):
            for host in REGISTRY_HOSTS:
                if host in line:
                    yield f"{path}:{number} names the registry {host}"
            if found := MACHINE_PATH.search(line):
                yield f"{path}:{number} names {found.group()}, a path of one machine"


def no_code_knows_a_scenario(house: House) -> Iterator[str]:
    """A string in emulator/ or zk/ that holds the name of a scenario, a recording or a hazard.

    A name of several words is not to stand in any string but docstrings and help texts. A name of
    one word is a common word too, so it is only not to be compared with, or looked up. A guard says
    which ticket it closes, a hazard which it is, and one of the catalogue has that ticket's name.
    """
    names = house.proper_names()
    composed = [name for name in names if re.search(r"[-_\d]", name)]
    anywhere = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, composed))})(?![\w-])")
    for source in house.product:
        for node, text in strings_of(source) if composed else ():
            for name in anywhere.findall(text):
                in_catalogue = names[name].endswith(".yaml")
                told = source.path.startswith((GUARDS, HAZARDS) if in_catalogue else GUARDS)
                if names[name] != source.path and not told:
                    yield source.at(node, f"knows `{name}`, the name in {names[name]}")
        for node, text in looked_up_in(source):
            if text in names and text not in composed:
                yield source.at(node, f"asks for `{text}`, the name in {names[text]}")


def strings_of(source: Source) -> Iterator[tuple[ast.AST, str]]:
    told = {id(node) for node in docstrings_of(source)}
    for node in source.nodes:
        if isinstance(node, ast.keyword) and node.arg in ("help", "epilog"):
            told |= {id(part) for part in ast.walk(node.value)}
    for node in source.nodes:
        match node:
            case ast.Constant(value=str() as text) if id(node) not in told:
                yield node, text


def looked_up_in(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Strings beside a comparison, in a case, as a key, or in a container asked with `in`."""
    for node in source.nodes:
        asked: list[ast.expr | None] = []
        match node:
            case ast.Compare():
                asked = [node.left, *node.comparators]
            case ast.MatchValue():
                asked = [node.value]
            case ast.Dict():
                asked = list(node.keys)
            case ast.Subscript():
                asked = [node.slice]
        for part in (part for one in asked for part in getattr(one, "elts", [one])):
            match part:
                case ast.Constant(value=str() as text):
                    yield part, text
