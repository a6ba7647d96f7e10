"""The house rules as a test: what no tool checks for us, read from the files themselves.

Each rule of `tests/house/rules.py` is held to this project, and to two small projects here: one
that breaks it, which it must notice, and one that it must let pass. A rule that cannot fail is
none.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house import rules, words
from tests.house.files import House, read_house
from tools.mutants.__main__ import NAMED
from tools.mutants.names import Unusable, find_site, functions, read_list

ROOT = Path(__file__).resolve().parents[1]

Rule = Callable[[House], Iterator[str]]
Files = dict[str, str | None]

HEAD = '"""A head."""\n'
X = "emulator/kafka/broker/x.py"
NAMES: Files = {
    "scenarios/slow-one.yaml": "",
    "scenarios/latency.yaml": "",
    "scenarios/flapping.yaml": "",
    "tests/recordings/kafka-1/quick-two.tar.xz": None,
    "emulator/invariants/known/kafka_12.py": "ID = 'KAFKA-12'\n",
    "emulator/hazards/catalogue/KAFKA-13.yaml": "run: 1s\n",
    "emulator/kafka/profiles/guards/x.py": "kafka = 'KAFKA-13'\n",
}


# For each rule: a project that breaks it, what is found there, and a project that keeps it.
SAMPLES: dict[Rule, tuple[Files, list[str], Files]] = {
    rules.modules_say_what_they_own: (
        {X: "A = 1\n", "zk/__init__.py": "", "tests/test_x.py": "# no\n"},
        [f"{X}:1 no docstring", "tests/test_x.py:1 no docstring", "zk/__init__.py:1 no docstring"],
        {X: HEAD, "zk/__init__.py": HEAD},
    ),
    rules.modules_have_names_of_their_own: (
        dict.fromkeys(
            ("zk/utils.py", "tests/broker_helpers.py", "emulator/helpers/a.py", "zk/manager2.py"),
            "",
        ),
        ["`helpers`", "`broker_helpers`", "`manager2`", "`utils`"],
        dict.fromkeys(
            ("emulator/kafka/broker/replica_manager.py", "zk/helpful.py", "docs/utils.md"), ""
        ),
    ),
    rules.nothing_is_left_undone: (
        {
            X: "def f():\n    # TODO: later\n    raise NotImplementedError\n",
            "tests/a.py": "import pytest\n@pytest.mark.xfail\ndef f():\n    pytest.skip()\n",
            "tests/b.py": '"""FIXME"""\nfrom pytest import importorskip\n',
        },
        [
            f"{X}:2 TODO",
            f"{X}:3 NotImplementedError",
            "tests/a.py:2 pytest xfail",
            "tests/a.py:4 pytest skip",
            "tests/b.py:1 FIXME",
            "tests/b.py:2 pytest importorskip",
        ],
        {X: "A = 'TODO'\nit.skip()\n", "docs/x.md": "TODO"},
    ),
    rules.no_test_sleeps: (
        {
            "tests/a.py": "import time\ntime.sleep(1)\n",
            "tests/b.py": "from time import sleep as nap\nnap(1)\n",
        },
        ["tests/a.py:2 sleeps", "tests/b.py:2 sleeps"],
        {
            "tests/a.py": "time.monotonic()\nclock.sleep(1)\n",
            "zk/real/server.py": "time.sleep(1)\n",
        },
    ),
    rules.chance_has_one_door: (
        {X: "import random\n", "zk/real/server.py": "from random import Random\n"},
        [f"{X}:1 imports random", "zk/real/server.py:1 imports random"],
        {rules.RANDOM_HOME: "import random\n", X: "from emulator.kernel import rng\n"},
    ),
    rules.kazoo_has_one_door: (
        {"zk/client/client.py": "\nfrom kazoo.client import KazooClient\n"},
        ["zk/client/client.py:2 imports kazoo"],
        {rules.KAZOO_HOME: "import kazoo.client\n", "tools/bench/raw.py": "import kazoo\n"},
    ),
    rules.the_core_knows_no_outside: (
        {
            X: "import time\n",
            rules.RANDOM_HOME: "import threading\n",
            "zk/model/tree.py": "from uuid import UUID\n",
        },
        [
            f"{X}:1 the core imports time",
            f"{rules.RANDOM_HOME}:1 the core imports threading",
            "zk/model/tree.py:1 the core imports uuid",
        ],
        {
            rules.RANDOM_HOME: "import random\n",
            "zk/real/server.py": "import time\n",
            "emulator/worlds/live.py": "import socket\n",
            X: "import timeit\nfrom . import time\n",
        },
    ),
    rules.no_order_comes_from_a_set: (
        {
            X: "for a in {1, 2}:\n    pass\n",
            "zk/model/tree.py": "b = [x for x in set(y) - z]\nc = list(d.keys() & e.keys())\n",
            "emulator/kernel/a.py": "def f(g: frozenset[int]):\n    for i in g:\n        pass\n",
            "emulator/kernel/b.py": "class C:\n    j: set[int]\n\n"
            "    def k(self):\n        yield from (m for m in self.j)\n",
        },
        [
            f"{X}:1 iterates over a set, `{{1, 2}}`",
            "zk/model/tree.py:1 iterates over a set, `set(y) - z`",
            "zk/model/tree.py:2 iterates",
            "emulator/kernel/a.py:2 iterates over a set, `g`",
            "emulator/kernel/b.py:5 iterates over a set, `self.j`",
        ],
        {
            X: "for a in sorted({1, 2}):\n    pass\nb = any(x for x in set(y))\n",
            "emulator/kernel/a.py": "def f(g: set[int], h: list[int]):\n    for i in h:\n"
            "        i in g\n\ndef k(g: list[int]):\n    for i in g:\n        pass\n",
            "emulator/view/x.py": "for a in {1, 2}:\n    pass\n",
        },
    ),
    rules.no_registry_and_no_machine_is_named: (
        {
            "requirements.lock": f"--index-url https://{rules.REGISTRY_HOSTS[0]}/simple\n",
            "docs/a.md": "one\ncd /" + "work/main\n",
            "Makefile": "X=/" + "root\n",
        },
        ["Makefile:1 names /", "docs/a.md:2 names /", "requirements.lock:1 names the registry"],
        {"docs/a.md": "../work/x a/root/b /workers ./root\n", "tests/recordings/a.gz": None},
    ),
    rules.no_code_knows_a_scenario: (
        NAMES
        | {
            X: "x = 'slow-one'\nif y == 'flapping':\n    z = f'{r}/quick-two.tar.xz'\n",
            "zk/x.py": "w = 'KAFKA-12 x'\nv = {'flapping': 1}\nu = 'KAFKA-13'\n",
        },
        [
            f"{X}:1 knows `slow-one`, the name in scenarios/slow-one.yaml",
            f"{X}:2 asks for `flapping`",
            f"{X}:3 knows `quick-two`",
            "zk/x.py:1 knows `KAFKA-12`, the name in emulator/invariants/known/kafka_12.py",
            "zk/x.py:2 asks for `flapping`",
            "zk/x.py:3 knows `KAFKA-13`",
        ],
        NAMES
        | {
            X: '"""As in slow-one.\n\nSee KAFKA-12"""\nx = "slow-one-two"\ny == "latency"\n',
            "emulator/cli/run.py": "a = Option(help='as slow-one')\nz = 'flapping'  # KAFKA-12\n",
        },
    ),
    words.names_are_of_the_field: (
        {"emulator/x.py": "def tell(whom): ...\n", "zk/x.py": "class X:\n    _asked = 1\n"},
        ["emulator/x.py:1 `tell`", "emulator/x.py:1 `whom`", "zk/x.py:2 `_asked`"],
        {"emulator/x.py": "def request(broker): ...\n", "tests/x.py": "asked = 1\n"},
    ),
    words.texts_are_plain: (
        {
            X: '"""The leader is told."""\n# It makes it anew.\nx = "whoever asks"\n',
            "docs/a.md": "It stands still.\n",
            "scenarios/a.yaml": "about: nobody's\n",
        },
        [f"{X}:1 `is told`", f"{X}:2 `anew`", f"{X}:3 `whoever`", "a.md:1 `stands", "a.yaml:1"],
        {X: HEAD, "docs/adr/1.md": "It is told.\n", "docs/spec/a.md": "It stands still.\n"},
    ),
    words.sentences_are_short: (
        {"docs/a.md": "word " * 30 + "word\n" + "word " * 30 + "word.\n"},
        ["docs/a.md 62 words"],
        {"docs/a.md": "word " * 30 + "word. " + "word " * 30 + "word.\n| " + "word " * 99 + "|\n"},
    ),
}


def named(rule: Rule) -> str:
    return rule.__name__


@pytest.fixture(scope="module")
def house() -> House:
    return read_house(ROOT)


@pytest.mark.parametrize("rule", SAMPLES, ids=named)
def test_this_project_keeps(rule: Rule, house: House) -> None:
    findings = list(rule(house))
    if findings:
        pytest.fail(f"{len(findings)} found:\n  " + "\n  ".join(findings), pytrace=False)


@pytest.mark.parametrize("rule", SAMPLES, ids=named)
def test_a_breach_is_noticed(rule: Rule) -> None:
    breach, expected, _ = SAMPLES[rule]
    findings = list(rule(House(breach)))
    assert len(findings) == len(expected), findings
    for part in expected:
        assert any(part in finding for finding in findings), (part, findings)


@pytest.mark.parametrize("rule", SAMPLES, ids=named)
def test_no_false_alarm(rule: Rule) -> None:
    assert list(rule(House(SAMPLES[rule][2]))) == []


def test_the_project_is_read_at_all(house: House) -> None:
    paths = {source.path for source in house.python}
    assert {"emulator/__init__.py", "zk/__init__.py", "tests/test_house.py"} <= paths
    assert "pyproject.toml" in house.files
    assert not any(path.startswith((".venv/", "runs/")) for path in house.files)


def test_every_rule_has_its_samples() -> None:
    """A rule is a public function of rules.py which takes a house, or one of words.RULES."""
    takes_a_house = {
        name
        for name, value in vars(rules).items()
        if getattr(value, "__annotations__", {}).get("house") is House
    }
    assert takes_a_house | set(map(named, words.RULES)) == set(map(named, SAMPLES))


def test_every_named_mutant_has_its_place() -> None:
    """Who renames a function, or takes a condition out, changes the list as well."""

    @cache
    def functions_of(file: str) -> dict[str, list[ast.AST]]:
        return functions(ast.parse((ROOT / file).read_text(encoding="utf-8")))

    mutants, lost = read_list(NAMED), []
    for mutant in mutants:
        try:
            find_site(mutant, functions_of(mutant.file))
        except (OSError, Unusable) as error:
            lost.append(str(error))
    assert len(mutants) > 200
    assert lost == [], f"mend {NAMED.relative_to(ROOT)}"


def test_the_tests_of_every_named_mutant_are_there() -> None:
    files = {
        test.partition("::")[0]
        for mutant in read_list(NAMED)
        for test in mutant.tests
        if test.startswith("tests/")
    }
    assert [file for file in sorted(files) if not (ROOT / file).exists()] == []


def test_the_words_that_choose_a_named_mutants_tests_are_there() -> None:
    """A test that was renamed leaves `-k` without a choice. Numbers are those of hazards."""
    lost = []
    for mutant in read_list(NAMED):
        tests = list(mutant.tests)
        if "-k" not in tests:
            continue
        files = [ROOT / test.partition("::")[0] for test in tests if test.startswith("tests/")]
        text = "".join(
            one.read_text()
            for file in files
            for one in (file, *file.rglob("*.py"))
            if one.is_file()
        )
        words = re.findall(r"\w+", tests[tests.index("-k") + 1])
        chosen = [word for word in words if word not in ("and", "or", "not") and not word.isdigit()]
        lost += [f"{mutant.name}: {word}" for word in chosen if word not in text]
    assert lost == []


def test_a_marker_that_chooses_files_stands_in_them(house: House) -> None:
    """`make test-slow-plays` and `test-shared` collect the files in which they find it."""
    elsewhere = [
        source.path
        for source in house.python
        if source.path.startswith("tests/")
        and not Path(source.path).name.startswith("test_")
        and re.search(r"\bmark\.(slow|shared)\b", (ROOT / source.path).read_text("utf-8"))
    ]
    assert elsewhere == []
