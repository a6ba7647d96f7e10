"""Fixtures for tests of clients."""

from __future__ import annotations

import pytest

from tests.live.processes import kcat as installed
from tests.live.processes.kcat import Kcat


@pytest.fixture(scope="session")
def kcat() -> Kcat:
    return installed.found()
