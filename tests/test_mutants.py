"""The tool that breaks rules, tried on a project of two lines."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.__main__ import Copies, Outcome, command, in_parallel, judge, trial
from tools.mutants.names import (
    Mutant,
    Unusable,
    core_mutants,
    diff,
    functions,
    mutate,
    near_tests,
    read_list,
)
from tools.mutants.operators import sites

ROOT = Path(__file__).resolve().parents[1]
THREE = """\
from threading import Event

def three():
    done = Event()
    done.set()
    done.wait()
    return 3 if 2 > 1 else 4
"""
TEST = "from emulator import three\n\ndef test_three():\n    assert three() == 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package `emulator` with one function and one test, and what must not be copied."""
    root = tmp_path / "project"
    for path, text in {
        "emulator/__init__.py": THREE,
        "emulator/testing/__init__.py": "",  # the installed plug-in of pytest is looked for here
        "emulator/testing/plugin.py": "",
        "tests/test_three.py": TEST,
        "pytest.ini": "[pytest]\npythonpath = .\nmarkers =\n  live\n  slow\n  soak\n",
        "runs/old/trace.ndjson": "{}",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def mutant(site: str, *tests: str) -> Mutant:
    return Mutant(f"emulator.__init__:three {site}", tests or ("tests/test_three.py",))


def verdicts(outcomes: list[Outcome]) -> list[str]:
    return [outcome.verdict for outcome in outcomes]


def test_each_verdict(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.mutants.__main__.TIMEOUT_S", 30)
    tried = {
        "off-by-one#3": "noticed",
        "swap-comparison#1": "SURVIVED",
        "drop-statement#1": "noticed (time-out)",
        "drop-statement#3": "UNUSABLE",
    }
    outcomes = trial(project, [mutant(site) for site in tried], jobs=2)
    assert verdicts(outcomes) == list(tried.values())
    assert "+    return 3 if 2 >= 1 else 4" in outcomes[1].why
    assert outcomes[3].why.endswith("three has no drop-statement#3")
    assert (project / "emulator" / "__init__.py").read_text() == THREE


def test_what_fails_with_nothing_broken_notices_nothing(project: Path) -> None:
    (project / "tests" / "test_three.py").write_text(TEST.replace("== 3", "== 2"))
    with pytest.raises(Unusable, match="exit code 1 with nothing broken"):
        trial(project, [mutant("off-by-one#3")], jobs=1)


def test_a_test_that_is_not_there(project: Path) -> None:
    with pytest.raises(Unusable, match="exit code 4 with nothing broken"):
        trial(project, [mutant("off-by-one#3", "tests/test_four.py")], jobs=1)


def test_only_a_failed_test_notices() -> None:
    assert [judge(code, "x")[0] for code in (None, 0, 1, 2, 3, 4, 5)] == [
        "noticed (time-out)",
        "SURVIVED",
        "noticed",
        *["UNUSABLE"] * 4,
    ]
    assert judge(2, "1 error during collection")[0] == "noticed"


# Source, and by operator what it becomes.
EVERY_OPERATOR = [
    ("if a and b:\n    x()", "negate-condition", ["if not (a and b):\n    x()"]),
    ("while not a:\n    x()", "negate-condition", ["while a:\n    x()"]),
    ("if b:\n    return\nx()", "drop-guard", ["pass\nx()"]),
    ("x(i for i in a if b)", "drop-filter", ["x((i for i in a))"]),
    ("x(a or b or c)", "swap-and-or", ["x(a and b and c)"]),
    ("x(a or b or c)", "drop-operand", ["x(b or c)", "x(a or c)", "x(a or b)"]),
    ("x(a < b, a >= b, a in b)", "swap-comparison",
     ["x(a <= b, a >= b, a in b)", "x(a < b, a > b, a in b)", "x(a < b, a >= b, a not in b)"]),
    ("x(a + b)", "swap-arithmetic", ["x(a - b)"]),
    ("x(1, True, 'a')", "off-by-one", ["x(2, True, 'a')"]),
    ("x(1, True, 'a')", "flip-constant", ["x(1, False, 'a')"]),
    ("x(max(a, b))", "swap-min-max", ["x(min(a, b))"]),
    ("x(max(a, b))", "take-argument", ["x(a)", "x(b)"]),
    ("x(sorted(a))", "drop-order", ["x(list(a))"]),
    ("return a", "negate-return", ["return not a"]),
    ("'text'\ny = x()\nself.a = y\nx()\nself.b += 1", "drop-statement", [
        "'text'\ny = x()\npass\nx()\nself.b += 1",
        "'text'\ny = x()\nself.a = y\npass\nself.b += 1",
        "'text'\ny = x()\nself.a = y\nx()\npass",
    ]),
    ("async with lock:\n    x()\n    y()", "drop-lock", ["x()\ny()"]),
    ("try:\n    x()\nexcept A:\n    y()\nexcept B:\n    raise", "drop-handler",
     ["try:\n    x()\nexcept A:\n    raise\nexcept B:\n    raise"]),
    ("match a:\n    case 1:\n        x()", "drop-case",
     ["match a:\n    case 1 if False:\n        x()"]),
    ("x()\ny()\nawait z()", "swap-statements", ["x()\nawait z()\ny()"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "operator", "mutants"), EVERY_OPERATOR)
def test_an_operator(body: str, operator: str, mutants: list[str]) -> None:
    def function(lines: str) -> str:
        indented = "".join(f"    {line}\n" for line in lines.splitlines())
        return f"async def f(self) -> bool:\n{indented}"

    source = function(body)
    names = [name for name, _ in sites(functions(ast.parse(source))["f"])]
    numbered = [name for name in names if name.startswith(f"{operator}#")]
    assert [mutate(Mutant(f"m:f {name}"), source) for name in numbered] == [
        ast.unparse(ast.parse(function(one))) + "\n" for one in mutants
    ]


def test_names_of_functions() -> None:
    source = (
        "A = 1\nclass B:\n    c: int = 2\n    @property\n    def d(self): return 3\n"
        "    @d.setter\n    def d(self, x):\n        def e(): x(4)\n        e()\n"
    )
    named = functions(ast.parse(source))
    assert list(named) == ["<module>", "B", "B.d"]
    assert [name for name, _ in sites(named["B.d"])] == [
        "off-by-one#1",
        "drop-statement#1",
        "off-by-one#2",
        "drop-statement#2",
    ]
    assert "+    c: int = 3" in diff(Mutant("m:B off-by-one#1"), source)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[mutant]]\ntests = ['t']\n", "missing required field `name`"),
        ("[[mutant]]\nname = 'a:b c#1'\ntests = 't'\n", r"tests`|array"),
        ("[[mutant", "Expected"),
        ("[[mutant]]\nname = 'a.b negate-condition#1'\n", "not MODULE:FUNCTION"),
        ("[[mutant]]\nname = 'a:b c#1'\ntests = ['t']\nseeds = 3\n", "tests or seeds, not both"),
        ("[[mutant]]\nname = 'a:b c#1'\n" * 2, "a:b c#1: the same name twice"),
    ],
)
def test_a_list_that_cannot_be_used(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(Unusable, match=complaint):
        read_list(tmp_path / "m.toml")


def test_the_core_has_mutants_and_each_can_be_made() -> None:
    mutants = list(core_mutants(ROOT))
    assert len(mutants) > 5_000
    for one in mutants[::200]:
        text = (ROOT / one.file).read_text()
        assert mutate(one, text) != ast.unparse(ast.parse(text)) + "\n", one.name
        assert all((ROOT / test).exists() for test in near_tests(one, ROOT))


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while a mutant runs: the copies are removed, and its processes ended."""
    program = (
        "import os, signal, sys, threading; from pathlib import Path\n"
        "from tools.mutants import __main__ as mutants\n"
        "from tools.mutants.names import Mutant\n"
        "root = Path(sys.argv[1]); (root / 'emulator').mkdir(parents=True)\n"
        "(root / 'emulator' / '__init__.py').write_text('x = 1')\n"
        "wait = 'import emulator, os, signal; emulator.x == 1 or (os.kill(%d, signal.SIGINT), "
        "signal.pause())' % os.getpid()\n"
        "mutants.command = mutants.pytest_command = lambda *_: [sys.executable, '-c', wait]\n"
        "m = Mutant('emulator.__init__:<module> off-by-one#1')\n"
        "try: mutants.trial(root, [m], 1)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "project")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines()[-1] == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


WAITS = (sys.executable, "-c", "import signal; signal.pause()")


def test_an_interrupt_while_a_process_starts_ends_that_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = Copies(tmp_path, tmp_path / "copies")

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            copies.close()

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    assert copies.run(tmp_path, WAITS, timeout=30)[0] == -signal.SIGKILL


def test_an_interrupt_while_the_work_is_handed_out_ends_what_runs(tmp_path: Path) -> None:
    copies = Copies(tmp_path, tmp_path / "copies")
    begun, codes = threading.Event(), []

    class Mutants(list[str]):
        def __iter__(self) -> Iterator[str]:
            yield "first"
            begun.wait()
            raise KeyboardInterrupt

    def work(copies: Copies, _: str) -> None:
        begun.set()
        codes.append(copies.run(tmp_path, WAITS, timeout=30)[0])

    with pytest.raises(KeyboardInterrupt):
        list(in_parallel(copies, 1, work, Mutants()))
    assert codes == [-signal.SIGKILL]


def test_who_must_notice() -> None:
    name = "emulator.kafka.broker.replica:Replica.x negate-condition#1"
    near = near_tests(Mutant(name), ROOT)
    assert near == ("tests/unit/kafka/broker/test_replica.py", "tests/interaction", "tests/spec")
    assert command(Mutant(name), ROOT)[-3:] == list(near)
    assert command(Mutant(name, ("tests/a.py", "-k", "b")), ROOT)[-3:] == ["tests/a.py", "-k", "b"]
    assert command(Mutant(name, seeds=7), ROOT)[-5:] == ["fuzz", "--seed", "0", "--runs", "7"]
