"""Each race runs twice: on the modelled ZooKeeper and on a real one."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live_in_soak: on a real ZooKeeper only in `make soak`")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "zookeeper" not in metafunc.fixturenames and "cluster" not in metafunc.fixturenames:
        return
    slow = metafunc.definition.get_closest_marker("live_in_soak") is not None
    marks = [pytest.mark.live, *([pytest.mark.soak] if slow else [])]
    real = pytest.param("embedded", marks=marks)
    metafunc.parametrize("zookeeper", ["simulated", real])
