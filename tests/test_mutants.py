"""The tool that breaks rules, tried on a project of two lines."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants.__main__ import (
    Mutation,
    Outcome,
    Unusable,
    apply,
    judge,
    read_mutations,
    trial,
)

THREE = "def three():\n    return 3\n"
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
        "pytest.ini": "[pytest]\npythonpath = .\n",
        "runs/old/trace.ndjson": "{}",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def mutation(
    name: str = "m", old: str = "return 3", new: str = "return 4", **more: object
) -> Mutation:
    more = more or {"tests": ("tests/test_three.py",)}
    return Mutation(name, "emulator/__init__.py", old, new, **more)  # type: ignore[arg-type]


def verdicts(outcomes: list[Outcome]) -> list[str]:
    return [outcome.verdict for outcome in outcomes]


def test_each_verdict(project: Path) -> None:
    ran = (sys.executable, "-c", "import emulator, sys; sys.exit(emulator.three() == 4)")
    outcomes = trial(
        project,
        [
            mutation("wrong"),
            mutation("harmless", new="return 1 + 2"),
            mutation("not there", old="return 5"),
            mutation("no longer Python", new="return ("),
            mutation("for ever", new="while True: pass", timeout=8, tests=("tests/test_three.py",)),
            mutation("a command notices", command=ran),
        ],
        jobs=2,
    )
    assert verdicts(outcomes) == [
        "killed",
        "SURVIVED",
        "BROKEN",
        "BROKEN",
        "killed (time-out)",
        "killed",
    ]
    assert outcomes[2].why == "emulator/__init__.py holds the old text 0 times, not once"
    assert (project / "emulator" / "__init__.py").read_text() == THREE


def test_what_fails_with_nothing_broken_notices_nothing(project: Path) -> None:
    (project / "tests" / "test_three.py").write_text(TEST.replace("== 3", "== 2"))
    with pytest.raises(Unusable, match="m: exit code 1 with nothing broken"):
        trial(project, [mutation()], jobs=1)


def test_a_test_that_is_not_there(project: Path) -> None:
    with pytest.raises(Unusable, match="m: exit code 4 with nothing broken"):
        trial(project, [mutation(tests=("tests/test_four.py",))], jobs=1)


def test_the_old_text_must_be_there_once() -> None:
    assert apply(mutation(), THREE) == THREE.replace("3\n", "4\n")
    with pytest.raises(Unusable, match="2 times"):
        apply(mutation(), THREE + THREE)


def test_only_a_failed_test_is_a_kill() -> None:
    assert [judge(code, "x")[0] for code in (0, 1, 2, 3, 4, 5)] == [
        "SURVIVED",
        "killed",
        *["BROKEN"] * 4,
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[mutation]]\nname = 'a'\n", "missing required field `file`"),
        ("[[mutation]]\nname='a'\nfile='f'\nold='x'\nnew='y'\ntests='t'\n", r"tests`|array"),
        ("[[mutation", "Expected"),
        ("[[mutation]]\nname='a'\nfile='f'\nold='x'\nnew='y'\n", "a: give either tests or a comm"),
        ("[[mutation]]\nname='a'\nfile='f'\nold='x'\nnew='x'\ntests=['t']\n", "a: old and new are"),
        (
            "[[mutation]]\nname='a'\nfile='f'\nold='x'\nnew='y'\ntests=['t']\n" * 2,
            "a: the same name",
        ),
    ],
)
def test_a_list_that_cannot_be_used(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(Unusable, match=complaint):
        read_mutations(tmp_path / "m.toml")


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while a mutant runs: the copies are removed, and its processes ended."""
    program = (
        "import os, signal, sys, threading; from pathlib import Path\n"
        "from tools.mutants import __main__ as mutants\n"
        "root = Path(sys.argv[1]); (root / 'emulator').mkdir(parents=True)\n"
        "(root / 'emulator' / '__init__.py').write_text('x = 1')\n"
        "wait = 'import emulator, os, signal; emulator.x == 1 or (os.kill(%d, signal.SIGINT), "
        "signal.pause())' % os.getpid()\n"
        "m = mutants.Mutation('m', 'emulator/__init__.py', 'x = 1', 'x = 2', (), "
        "(sys.executable, '-c', wait))\n"
        "try: mutants.trial(root, [m], 1)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "project")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert done.stdout.splitlines()[-1] == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


def test_seeds_are_tried_by_isr_fuzz() -> None:
    tried = mutation("planted", seeds=7).argv()
    assert Path(tried[0]).name == "isr"
    assert tried[1:] == ["fuzz", "--seed", "0", "--runs", "7"]


def test_one_of_tests_command_and_seeds() -> None:
    with pytest.raises(Unusable):
        mutation("both", seeds=7, tests=("tests/test_three.py",))
