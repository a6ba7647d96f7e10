"""A mutant by name: where it is, what it breaks, and which tests must notice.

`emulator.kafka.broker.replica:Replica.is_caught_up negate-condition#2`: a module, a function by its
qualified name, an operator with the number of its site (`operators`). A class stands for the
defaults in its body, `<module>` for the constants of the module.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tools.mutants.operators import Function, Site, sites

CORE = ("emulator/kafka", "emulator/kernel", "emulator/invariants", "zk/client", "zk/model")
OF_MODULE = "<module>"
EVERYWHERE = ("tests/interaction", "tests/spec")
"""What plays the core without a scenario: it follows the tests of a mutant's own room."""


class Unusable(ValueError):
    """A mutant, or a list of them, that cannot be tried."""


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`tests` (arguments of pytest) or `seeds` (of `isr fuzz`) must notice; neither: its room."""

    name: str
    tests: tuple[str, ...] = ()
    seeds: int = 0

    def __post_init__(self) -> None:
        target, _, site = self.name.partition(" ")
        if ":" not in target or "#" not in site:
            raise Unusable(f"{self.name}: not MODULE:FUNCTION OPERATOR#NUMBER")
        if self.tests and self.seeds:
            raise Unusable(f"{self.name}: give tests or seeds, not both")

    @property
    def file(self) -> str:
        return self.name.partition(":")[0].replace(".", "/") + ".py"

    @property
    def function(self) -> str:
        return self.name.partition(":")[2].partition(" ")[0]

    @property
    def site(self) -> str:
        return self.name.partition(" ")[2]


class MutantList(msgspec.Struct, forbid_unknown_fields=True):
    mutant: list[Mutant] = []


def read_list(path: Path) -> list[Mutant]:
    try:
        mutants = msgspec.toml.decode(path.read_bytes(), type=MutantList).mutant
    except (OSError, msgspec.DecodeError) as error:
        raise Unusable(f"{path}: {error}") from error
    names = [mutant.name for mutant in mutants]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise Unusable(f"{path}: {', '.join(repeated)}: the same name twice")
    return mutants


def core_mutants(root: Path) -> Iterator[Mutant]:
    """Every mutant of the core, in the order of files and lines."""
    for folder in CORE:
        for path in sorted((root / folder).rglob("*.py")):
            module = path.relative_to(root).with_suffix("").as_posix().replace("/", ".")
            for function, roots in functions(ast.parse(path.read_text(encoding="utf-8"))).items():
                for site, _ in sites(roots):
                    yield Mutant(f"{module}:{function} {site}")


def functions(tree: ast.Module) -> dict[str, list[ast.AST]]:
    """The syntax trees behind each name: a property and its setter share one."""
    named: dict[str, list[ast.AST]] = {}

    def collect(body: Iterable[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, Function):
                named.setdefault(f"{owner}{node.name}", []).append(node)
            elif isinstance(node, ast.ClassDef):
                collect(node.body, f"{owner}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                named.setdefault(owner[:-1] or OF_MODULE, []).append(node)

    collect(tree.body, "")
    return named


def mutate(mutant: Mutant, text: str) -> str:
    """The module with that one thing broken. Unusable: the name fits nothing there."""
    tree = ast.parse(text)
    find_site(mutant, functions(tree)).apply()
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def find_site(mutant: Mutant, named: dict[str, list[ast.AST]]) -> Site:
    """The place in its module's functions. Unusable: there is none."""
    roots = named.get(mutant.function)
    if roots is None:
        raise Unusable(f"{mutant.name}: {mutant.file} has no {mutant.function}")
    site = dict(sites(roots)).get(mutant.site)
    if site is None:
        raise Unusable(f"{mutant.name}: {mutant.function} has no {mutant.site}")
    return site


def diff(mutant: Mutant, text: str) -> str:
    """What is broken, comments and layout left out."""
    before, after = (
        ast.unparse(ast.parse(one)).splitlines() for one in (text, mutate(mutant, text))
    )
    changed = list(difflib.unified_diff(before, after, mutant.name, "broken", n=2, lineterm=""))
    return "\n".join(changed)


def near_tests(mutant: Mutant, root: Path) -> tuple[str, ...]:
    """Of its room: the tests named like its file, or else of the nearest folder that has some."""
    path = Path(mutant.file)
    room = Path("tests/unit", *path.parts[1:-1] if path.parts[0] == "emulator" else ("zk",))
    own = sorted((root / room).glob(f"test_{path.stem}.py"))
    while not (root / room).is_dir():
        room = room.parent
    near = [one.relative_to(root).as_posix() for one in own] or [room.as_posix()]
    return (*near, *EVERYWHERE)
