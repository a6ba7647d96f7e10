"""Processes of 2.7: an ISR change is a request to the controller's process, over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.trace import events
from emulator.trace.reader import read_events
from tests.live.processes.cluster import three_brokers
from tests.live.processes.situations import append

pytestmark = [pytest.mark.live, pytest.mark.slow]


def test_a_follower_that_stands_still_leaves_and_comes_back_through_the_controller(
    tmp_path: Path,
) -> None:
    """SIGSTOP, SIGCONT; the leader writes nothing itself, and no notification is left."""
    with three_brokers(tmp_path, "--profile 2.7", "replica.lag.time.max.ms=2000") as brokers:
        controller = brokers.controller()
        leader, follower = (n for n in (1, 2, 3) if n != controller)
        brokers.create("orders", (leader, follower, controller))

        def isr_has(count: int) -> None:
            brokers.until(
                lambda: brokers.partition(leader, "orders"),
                lambda s: s is not None and len(s.isr) == count,
            )

        isr_has(3)
        brokers.by_id[follower].pause()
        append(brokers, "orders", leader)
        isr_has(2)
        brokers.by_id[follower].resume()
        isr_has(3)
        for broker in (leader, controller):
            brokers.by_id[broker].terminate()
            assert brokers.by_id[broker].exit_code(30) == 0
        asked = list(read_events(brokers.folder / f"broker-{leader}.ndjson"))
        decides = list(read_events(brokers.folder / f"broker-{controller}.ndjson"))
    proposed = [len(e.isr) for e in asked if isinstance(e, events.AlterIsrProposed)]
    assert _shrinks_and_expands(proposed)
    assert any(isinstance(e, events.AlterIsrSent) for e in asked)
    decided = [e for e in decides if isinstance(e, events.AlterIsrDecided)]
    assert {e.sender for e in decided} == {leader}
    assert _shrinks_and_expands([len(e.isr) for e in decided if e.error == "NONE"])
    assert not any(isinstance(e, events.IsrChangeNotified) for e in asked)


def _shrinks_and_expands(sizes: list[int]) -> bool:
    return 2 in sizes and 3 in sizes[sizes.index(2) :]
