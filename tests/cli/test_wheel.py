"""An installed wheel is enough: it plays the shipped scenarios by name, without the clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from emulator.scenario import shipped

ROOT = Path(__file__).resolve().parents[2]
ISR = (sys.executable, "-c", "from emulator.cli import main; main()")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, as an installer puts it into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir", "--quiet")
    command = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        *offline,
        "--wheel-dir",
        str(folder),
        str(ROOT),
    )
    subprocess.run(command, check=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as file:
        file.extractall(folder / "site-packages")
    return folder / "site-packages"


def isr(installed: Path, where: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        (*ISR, *arguments), cwd=where, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_it_has_every_scenario_and_plays_one(installed: Path, tmp_path: Path) -> None:
    told = json.loads(isr(installed, tmp_path, "scenarios", "--json"))["scenarios"]
    assert [one["name"] for one in told] == list(shipped.shipped())
    assert all(one["file"].startswith(str(installed)) for one in told)
    options = ("--zookeeper", "simulated", "--seed", "1", "--json")
    summary = json.loads(isr(installed, tmp_path, "run", told[0]["name"], *options))
    assert summary["verdict"] == "held"
    isr(installed, tmp_path, "show", "latest", "--html", "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
