"""The progress line of all commands."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import pytest

from emulator.cli.parts.progress import ProgressLine


def test_a_step_whose_reader_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of `isr cluster up 2>&1 | head -2`: its end shows a step, and then writes the run."""
    reader, writer = os.pipe()
    os.close(reader)
    closed = os.fdopen(writer, "w")
    monkeypatch.setattr(sys, "stderr", closed)
    with ProgressLine() as line:
        line.step("ending brokers and ZooKeeper")
        line.step("writing the run")
    with suppress(BrokenPipeError):
        closed.close()
