"""Fixtures for tests of the command line."""

from __future__ import annotations

import pytest

from tests.command import Isr


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    return Isr(capsys)
