"""Compiled modules: when a build counts, what may be compiled, and that the traces are the same."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import compiled

ROOT = compiled.SOURCES
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for package in ("emulator", "zk")
    for path in (ROOT / package).rglob("*.py")
}
PLAYS = """\
from emulator import compiled
print(compiled.use())
from tests.sim.shipped_runs import NAMES
from tests.sim.trace_digests import digest
for name in NAMES:
    print(name, digest(name, 1))
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name in ("emulator/a.py", "emulator/b/c.py", "zk/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n")
    return tmp_path


@pytest.mark.parametrize("name", ["emulator/a.py", "emulator/b/c.py", "zk/d.py"])
def test_one_letter_anywhere_is_another_build(sources: Path, name: str) -> None:
    """Another one, or one more."""
    text = (sources / name).read_text()
    builds = {compiled.digest(sources)}
    for changed in ("%" + text[1:], text + "#"):
        (sources / name).write_text(changed)
        builds.add(compiled.digest(sources))
    assert len(builds) == 3


def test_a_new_name_is_another_build(sources: Path) -> None:
    before = compiled.digest(sources)
    (sources / "zk/d.py").rename(sources / "zk/e.py")
    assert compiled.digest(sources) != before


@settings(max_examples=20)
@given(st.binary(max_size=30), st.binary(max_size=30))
def test_what_stands_in_which_file_matters(
    tmp_path_factory: pytest.TempPathFactory, one: bytes, other: bytes
) -> None:
    """The same text, cut elsewhere, is another one."""
    found = set()
    for first, second in ((one, other), (one + other, b""), (b"", one + other)):
        folder = tmp_path_factory.mktemp("sources") / "emulator"
        folder.mkdir()
        (folder / "a.py").write_bytes(first)
        (folder / "b.py").write_bytes(second)
        found.add(compiled.digest(folder.parent))
    assert len(found) == len({(one, other), (one + other, b""), (b"", one + other)})


def asked(builds: Path, *, built_of: str, before: str = "") -> str:
    """What a new process says when it uses what is built there of the sources with that digest."""
    (builds / built_of[:32]).mkdir()
    program = f"{before}\nfrom pathlib import Path\nfrom emulator import compiled\n"
    program += f"compiled.BUILDS = Path({str(builds)!r})\nprint(compiled.use())"
    environment = {k: v for k, v in os.environ.items() if k != compiled.SWITCH}
    command = [sys.executable, "-c", program]
    told = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


def test_the_build_of_these_sources_is_used(tmp_path: Path) -> None:
    assert asked(tmp_path, built_of=compiled.digest()) == "True"


def test_the_build_of_other_sources_is_not(tmp_path: Path) -> None:
    assert asked(tmp_path, built_of="0" * 64) == "False"


def test_nor_any_when_a_hot_module_runs_as_written_already(tmp_path: Path) -> None:
    before = "import emulator.kernel.scheduler"
    assert asked(tmp_path, built_of=compiled.digest(), before=before) == "False"


def test_nor_any_when_the_environment_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "BUILDS", tmp_path)
    (tmp_path / compiled.digest()[:32]).mkdir()
    monkeypatch.setenv(compiled.SWITCH, "0")
    assert not compiled.use()


def test_tests_run_what_is_written() -> None:
    assert not compiled.use()
    assert {import_module(n).__file__ for n in compiled.HOT} == {
        str(MODULES[n]) for n in compiled.HOT
    }


# -- what a compiled module may be -----------------------------------------------------------------


def classes(name: str) -> Iterator[ast.ClassDef]:
    tree = ast.parse(MODULES[name].read_text())
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def imported(name: str) -> dict[str, str]:
    """What a module's names stand for: `Kernel` -> `emulator.kernel.scheduler`."""
    nodes = ast.walk(ast.parse(MODULES[name].read_text()))
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname or alias.name: str(n.module) for n in found for alias in n.names}


def test_nobody_outside_inherits_from_a_compiled_class() -> None:
    """It could not: an interpreted class has no place for what a compiled one keeps."""
    breaches = [
        f"{name}: {made.name}({ast.unparse(base)}): compile it too (emulator.compiled.HOT)"
        for name in MODULES.keys() - set(compiled.HOT)
        for made in classes(name)
        for base in made.bases
        if imported(name).get(ast.unparse(base).split("[")[0]) in compiled.HOT
    ]
    assert breaches == []


@pytest.mark.parametrize("name", compiled.HOT)
def test_what_mypyc_does_not_know_is_not_in_a_hot_module(name: str) -> None:
    """Structs are made by their own metaclass; a cached property is computed at every look."""
    structs = [made.name for made in classes(name) if "Struct" in map(last_of, made.bases)]
    assert structs == []
    assert "cached_property" not in MODULES[name].read_text()
    assert not re.search(r"self\._thread(:| =)", MODULES[name].read_text()), "C knows `__thread`"


def last_of(base: ast.expr) -> str:
    return ast.unparse(base).rpartition(".")[2]


@pytest.mark.slow
def test_every_shipped_scenario_has_the_same_trace() -> None:
    subprocess.run([sys.executable, "-m", "emulator.compiled"], cwd=ROOT, check=True)
    built = compiled.build_of(compiled.digest()).is_dir()
    assert built or shutil.which(os.environ.get("CC", "cc")) is None
    written, by_machine = played("0"), played("1")
    assert (written[0], by_machine[0]) == ("False", str(built))
    assert by_machine[1:] == written[1:]


def played(switch: str) -> list[str]:
    environment = {**os.environ, compiled.SWITCH: switch}
    told = subprocess.run(
        [sys.executable, "-c", PLAYS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.splitlines()
