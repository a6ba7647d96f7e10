"""One Spark session for all tests: it takes longer to start than most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from emulator.analysis import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Small and quick to start; nothing is compiled for few rows. A task is tried three times."""
    found = session.start("local[2,3]", session.sized(0))
    yield found
    found.stop()
