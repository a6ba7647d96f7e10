"""Pairs of expansions by one leader, and their order."""

from __future__ import annotations

import json

from emulator.conformance.recording import Fact, Recording
from tools.fidelity.orders import Pair, pairs_of


def recording(*writes: tuple[int, int, int, tuple[int, ...]]) -> Recording:
    """States of partitions of orders, which broker 1 leads: time, partition, version, ISR."""
    facts: list[Fact] = []
    for t, partition, version, isr in writes:
        path = f"/brokers/topics/orders/partitions/{partition}/state"
        state = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": isr}
        fact = {"kind": "zookeeper", "t": t, "broker": 1, "path": path, "data": json.dumps(state)}
        how = {"op": "setData", "version": version} if version else {"op": "create"}
        facts.append({**fact, **how})
    return Recording({"t": None, "kind": "settings", "kafka": "2.6.3"}, facts, [], "recorded")


def test_a_broker_that_joins_two_isrs_of_a_leader_is_a_pair_unless_they_are_far_apart() -> None:
    run = recording(
        (0, 0, 0, (1, 2, 3)),
        (0, 1, 0, (1, 2, 3)),
        (10, 0, 1, (1,)),
        (20, 1, 1, (1,)),
        (1000, 1, 2, (1, 2)),
        (1030, 0, 2, (1, 2)),
        (1040, 0, 3, (1, 2, 3)),
        (1900, 1, 3, (1, 2, 3)),
    )
    assert list(pairs_of(run)) == [(1000, 30, Pair(1, 2, "orders-1", "orders-0"))]
