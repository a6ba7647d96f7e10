"""The environment's own brokers start again after a run."""

from __future__ import annotations

import pytest
from docker.errors import APIError

from emulator.worlds.processes.compose_site import start_again
from zk.real.server import ServerError


class StoppedContainer:
    def __init__(self, name: str, refused: str = "") -> None:
        self.name, self.refused, self.runs = name, refused, False

    def start(self) -> None:
        if self.refused:
            raise APIError("500 Server Error", explanation=self.refused)
        self.runs = True


def test_one_that_cannot_start_is_named_and_the_others_start() -> None:
    first, second = StoppedContainer("broker-1", "address already in use"), StoppedContainer("b-2")
    with pytest.raises(ServerError, match=r"do not start again: broker-1 \(address already in use"):
        start_again([first, second])  # type: ignore[list-item]
    assert second.runs
    start_again([second])  # type: ignore[list-item]
