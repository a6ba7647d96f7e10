"""What is written about topics, and in which order, is what real Kafka wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.conformance import player
from emulator.conformance.recording import Recording, read_recording

RECORDINGS = Path(__file__).parents[3] / "tools/fidelity/recordings"
TOPIC, PARTITION = 3, 5
"""The number of slashes in their paths."""


def writes(run: Recording) -> Iterator[tuple[str, str, Any]]:
    """(operation, path, contents) of each write to a topic, and each new partition."""
    for fact in run.of("zookeeper"):
        for it in fact.get("ops", (fact,)):
            path = it.get("path", "")
            if not path.startswith("/brokers/topics/") or it["op"] not in ("create", "setData"):
                continue
            if path.count("/") == PARTITION:
                yield it["op"], path, None
            elif path.count("/") == TOPIC and it.get("data"):
                # As text, so that the order of the partitions counts.
                contents = json.loads(it["data"])
                yield it["op"], path, {key: str(value) for key, value in contents.items()}


@pytest.mark.parametrize(
    "name",
    [
        "kafka-0.8.2.2/five-brokers-moves",
        "kafka-0.9.0.1/topic-lifecycle",
        "kafka-1.0.2/five-brokers-moves",
        "kafka-1.0.2/topic-lifecycle",
        "kafka-1.1.1/five-brokers-moves",
        "kafka-2.1.1/topic-lifecycle",
        "kafka-2.4.1/five-brokers-moves",
    ],
)
def test_topics_are_created_extended_and_moved_as_recorded(name: str) -> None:
    real = read_recording(RECORDINGS / name)
    played = player.simulate(player.script_of(real), 1)
    assert list(writes(played)) == list(writes(real))
