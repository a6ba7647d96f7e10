"""The targets of the Makefile that no other test runs as they are.

Too long to be run here, and tried small elsewhere: pages (`tests/sim/test_pages.py`,
`test_misconceptions.py`), paths and fidelity (`test_paths_page.py`, `test_fidelity_page.py`),
hazards (`tests/unit/hazards/test_document.py`), all of bench (`tests/bench`) and mutants
(`tests/test_mutants.py`).
Never run by a test: lock (asks the registry), format and clean (change the clone), soak (hours).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)


def make(*words: str) -> str:
    done = subprocess.run(
        ["make", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_target_is_phony() -> None:
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].replace("\\", "").split()) == set(TARGETS)


def test_help_has_a_line_for_each_target_that_a_developer_calls() -> None:
    lines = make("help").splitlines()
    assert {"make test", "make test-all", "make check"} <= {line[:21].strip() for line in lines}


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_would_run_is_there(target: str) -> None:
    commands = make("-n", target)
    for path in re.findall(r"(?:\.ci/[a-z-]+|tests/[\w/]+\.py|tests/[a-z]+)(?=\s|$)", commands):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"-m (tools[\w.]*)", commands):
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module


def test_a_bench_and_the_mutants_of_a_function() -> None:
    assert "virtual against real time" in make("bench", "ARGS=--tiny virtual")
    shown = make("mutants", "ARGS=--show --within emulator.kafka.broker.replica:is_follower")
    assert "+++ broken" in shown
