"""Recordings that were matched late, each held to the whole verdict.

Each has a request, an order or a process that no other recording has; blind seeds cover all of it.
"""

from __future__ import annotations

import pytest

from tests.sim.blind_seeds import judged

MATCHED = {
    "kafka-2.6.3/admin-znodes": "a command znode is listed before it is deleted",
    "kafka-2.6.3/zombie-controller": "a client leaves brokers that metadata does not list",
    "kafka-2.6.3/quick-bounce": "a process that finds its old registration exits",
    "kafka-1.1.1/leader-crash": "the asynchronous client without fenced writes",
    "kafka-1.1.1/reassignment": "a completed move is taken out of a command that nobody reads",
    "kafka-2.1.1/topic-lifecycle": "a new controller deletes the command of moves",
    "kafka-2.4.1/topic-lifecycle": "one StopReplica for deletions, one for the rest",
    "kafka-2.8.2/leader-crash": "the id of a new topic is read",
    "kafka-3.3.2/topic-lifecycle": "a broker that joins hears nothing of deletions",
}


@pytest.mark.parametrize("name", MATCHED)
def test_a_recording_is_matched_by_blind_seeds(name: str) -> None:
    verdict = judged(name)
    assert verdict.matched, verdict.nearest_differences
