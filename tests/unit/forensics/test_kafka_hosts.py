"""The events of one real broker among emulated ones, from its logs."""

from __future__ import annotations

from pathlib import Path

from emulator.forensics.kafka_hosts import read_kafka_host
from emulator.trace import events as e

_CACHED = (
    "[2026-11-25 18:40:{at}] TRACE [Broker id=3] Cached leader info"
    " PartitionState(controllerEpoch=1, leader=1, leaderEpoch=0, isr={isr}, zkVersion={version},"
    " replicas=[1, 2, 3], offlineReplicas=[]) for partition orders-0 in response to"
    " UpdateMetadata request sent by controller 3 epoch 1 with correlation id {id}"
    " (state.change.logger)\n"
)
_BETWEEN = (
    "[2026-11-25 18:40:20,000] TRACE [Broker id=3] Received LeaderAndIsr request"
    " PartitionState(controllerEpoch=1, leader=1, leaderEpoch=0, isr=[1, 2, 3], zkVersion=0,"
    " replicas=[1, 2, 3], isNew=false) correlation id 5 from controller 3 epoch 1 for partition"
    " orders-0 (state.change.logger)\n"
)


def test_the_events_of_1_1_1_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    """No line ends an UpdateMetadata: it is known to be whole at the next one, or at the end."""
    (tmp_path / "state-change.log").write_text(
        _CACHED.format(at="13,918", isr="[1, 2, 3]", version=0, id=4)
        + _BETWEEN
        + _CACHED.format(at="24,064", isr="[1, 3]", version=1, id=6)
    )
    events = read_kafka_host(tmp_path, 3)
    kinds = [type(event) for event in events]
    assert kinds == [e.MetadataCacheUpdated, e.LeaderAndIsr, e.MetadataCacheUpdated]
    assert [event.t - events[0].t for event in events] == [0, 6_082_000, 10_146_000]
