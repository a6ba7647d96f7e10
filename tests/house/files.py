"""A project as the house rules see it: its files by path, and its Python as trees.

Read from git (what it tracks or would track), or made from a dictionary: a rule's sample is a small
project too. This module knows no rule; it knows where the core is and whose names are proper names.
"""

import ast
import subprocess
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath

CORE = (
    "emulator/trace/",
    "emulator/kernel/",
    "emulator/kafka/",
    "emulator/scenario/actions/",
    "emulator/invariants/",
    "zk/client/",
    "zk/model/",
    "zk/scala/",
    "zk/paths.py",
)
# Names of one word which mean something else as well: a fault, a topic's operation.
GENERIC_NAMES = frozenset({"latency", "reassignment"})


class Source:
    """One Python file: its text, its tree, its imports."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.lines = text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def at(self, node: ast.AST | int, what: str) -> str:
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return f"{self.path}:{line} {what}"

    def imports(self) -> Iterator[tuple[ast.AST, str]]:
        """Each absolute import with the name of its top package."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node, alias.name.partition(".")[0]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield node, (node.module or "").partition(".")[0]

    def functions(self) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node, (node.end_lineno or node.lineno) - node.lineno + 1

    @property
    def is_product(self) -> bool:
        return self.path.startswith(("emulator/", "zk/"))

    @property
    def is_core(self) -> bool:
        return self.path.startswith(CORE)


class House:
    """A project: the texts of its files by path (None: not a text)."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.files = files
        self.python = [
            Source(path, text or "")
            for path, text in sorted(files.items())
            if path.endswith(".py") and path.startswith(("emulator/", "zk/", "tests/", "tools/"))
        ]
        self.product = [source for source in self.python if source.is_product]
        self.core = [source for source in self.python if source.is_core]

    def proper_names(self) -> dict[str, str]:
        """Names of scenarios, recordings and hazards, each with the file that may know it."""
        names = {}
        for path in self.files:
            pure = PurePosixPath(path)
            stem = pure.name.partition(".")[0]
            if pure.match("scenarios/*.yaml") or pure.match("emulator/hazards/catalogue/*.yaml"):
                names[stem] = path
            elif pure.match("emulator/invariants/known/*.py") and stem not in ("__init__", "base"):
                names[stem] = names[stem.replace("_", "-")] = path
                names[stem.replace("_", "-").upper()] = path
            elif path.startswith("tests/recordings/") and len(pure.parts) > 3:
                names[pure.parts[3].partition(".")[0]] = path
        return {name: path for name, path in names.items() if name not in GENERIC_NAMES}


def read_house(root: Path) -> House:
    return House({path: text_of(root / path) for path in paths_under(root)})


def paths_under(root: Path) -> list[str]:
    """The files that git tracks or would track; in a copy without git, all except generated
    ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0 and (root / ".git").exists():
        return [path for path in listed.stdout.decode().split("\0") if (root / path).is_file()]
    made = {".venv", "runs", "__pycache__", ".git"}
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if not made.intersection(path.parts))


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):
        return None
