"""The main job, live on a real ZooKeeper server: the one play of that kind in `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.scenario import shipped
from tests.command import Isr

pytestmark = [pytest.mark.live, pytest.mark.demo]


def test_an_isr_shrinks_and_expands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # It shares two cores with everything else in `make test`. What it expects has seconds to spare,
    # so a kernel that is late by less than that still says something.
    text = shipped.shipped()["shrink-and-expand"].read_text(encoding="utf-8")
    scenario = tmp_path / "demo.yaml"
    scenario.write_text(f"{text}\nkernel_late: 1s\n", encoding="utf-8")
    code, out, err = Isr(capsys)("run", scenario, "--time-scale", 2, "--quiet", "--out", tmp_path)
    assert code == 0, out + err
