"""kcat against brokers as processes: a session as somebody types it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.processes.cluster import Brokers, three_brokers

pytestmark = [pytest.mark.live, pytest.mark.slow]

FINDS_IT = Path(__file__).resolve().parents[3] / ".ci" / "kcat"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with three_brokers(tmp_path_factory.mktemp("brokers")) as running:
        running.create("orders", (1, 2, 3), (3, 1, 2))
        yield running


class Kcat:
    """The command, at one broker."""

    def __init__(self, command: str, libraries: str) -> None:
        self._command = command
        self._environment = {**os.environ, "LD_LIBRARY_PATH": libraries}

    def __call__(self, brokers: Brokers, broker: int, *words: str, given: str = "") -> str:
        """What it says; it has nothing to complain of."""
        at = f"127.0.0.1:{brokers.ports[broker]}"
        told = subprocess.run(
            (self._command, "-b", at, *words),
            input=given,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        assert "ERROR" not in told.stderr
        return told.stdout


@pytest.fixture(scope="module")
def kcat() -> Kcat:
    """Debian's, unpacked where there is none."""
    command, libraries = subprocess.check_output(FINDS_IT, text=True).splitlines()
    return Kcat(command, libraries)


def test_lists_leaders_replicas_and_isr_as_each_broker_knows_them(
    kcat: Kcat, brokers: Brokers
) -> None:
    for broker in (1, 2, 3):
        listed = json.loads(kcat(brokers, broker, "-L", "-J"))
        assert sorted(b["id"] for b in listed["brokers"]) == [1, 2, 3]
        assert listed["controllerid"] == brokers.controller(broker)
        (topic,) = listed["topics"]
        found = [(p["leader"], _ids(p["replicas"]), _ids(p["isrs"])) for p in topic["partitions"]]
        assert found == [(1, [1, 2, 3], [1, 2, 3]), (3, [3, 1, 2], [3, 1, 2])]


def _ids(listed: list[dict[str, int]]) -> list[int]:
    return [one["id"] for one in listed]


def test_lists_in_words(kcat: Kcat, brokers: Brokers) -> None:
    listed = kcat(brokers, 1, "-L", "-t", "orders")
    assert "partition 0, leader 1, replicas: 1,2,3, isrs: 1,2,3" in listed


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_produces_and_consumes_up_to_the_high_watermark(
    kcat: Kcat, brokers: Brokers, acks: str
) -> None:
    topic = f"acks-{acks}"
    brokers.create(topic, (2, 3))
    produce = ("-P", "-t", topic, "-p", "0", "-X", f"acks={acks}")
    kcat(brokers, 1, *produce, given="one\ntwo\nthree\n")
    consume = ("-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", "3", "-q")
    assert kcat(brokers, 3, *consume, "-f", "%o %s\n") == "0 one\n1 two\n2 three\n"


def test_asks_for_offsets(kcat: Kcat, brokers: Brokers) -> None:
    brokers.create("offsets", (1,))
    kcat(brokers, 1, "-P", "-t", "offsets", "-p", "0", given="a\nb\n")
    assert kcat(brokers, 1, "-Q", "-t", "offsets:0:-1").split() == ["offsets", "[0]", "offset", "2"]
    assert kcat(brokers, 1, "-Q", "-t", "offsets:0:-2").split() == ["offsets", "[0]", "offset", "0"]
