"""The main job, live on a real ZooKeeper server: the one play of that kind in `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Isr

pytestmark = [pytest.mark.live, pytest.mark.demo]


def test_an_isr_shrinks_and_expands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = Isr(capsys)("run", "shrink-and-expand", "--quiet", "--out", tmp_path)
    assert code == 0, out + err
