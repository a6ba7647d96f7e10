"""StopReplica at a broker: which epochs are obeyed, and what is left (spec §4.4, KIP-570)."""

from __future__ import annotations

import pytest

from emulator.kafka.protocol.messages import StopReplicaPartition, StopReplicaRequest
from tests.interaction.hosting import (
    ORDERS_0,
    ORDERS_1,
    Hosting,
    fetch,
    leader_and_isr,
    leading,
    produce,
    state_of,
    update_metadata,
)
from tests.interaction.playbook import Incoming, Playbook, after_ms, thread


def stop(
    *wanted: tuple[int, bool], controller_epoch: int = 7, name: str = "StopReplica"
) -> Incoming:
    """Stop orders-0, orders-1 … : (leader epoch, delete)."""
    partitions = tuple(
        StopReplicaPartition(ORDERS_0._replace(partition=n), epoch, delete)
        for n, (epoch, delete) in enumerate(wanted)
    )
    request = StopReplicaRequest(2, controller_epoch, -1, partitions)

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)

        async def handle() -> str:
            response = await play.replicas.stop_replicas(request)
            return " ".join([response.error.name, *(e.name for _, e in response.partitions)])

        thread(name, handle())(play)

    return start


def following() -> Hosting:
    play = Hosting()
    play >> leader_and_isr(state_of(leader=2), state_of(ORDERS_1, leader=2))
    play.forget()
    return play


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        pytest.param(5, "NONE", id="a greater epoch"),
        pytest.param(4, "FENCED_LEADER_EPOCH", id="an equal epoch"),
        pytest.param(3, "FENCED_LEADER_EPOCH", id="a lower epoch"),
        pytest.param(-1, "NONE", id="no epoch: the old protocol"),
        pytest.param(-2, "NONE", id="deletion"),
    ],
)
def test_whether_it_is_obeyed_hangs_on_the_leader_epoch(epoch: int, answer: str) -> None:
    with following() as play:
        play >> stop((epoch, False)) << f"StopReplica: NONE {answer}"
        fetched = play.fetchers.threads[2, 0].partitions
        assert (ORDERS_0 in fetched) is (answer != "NONE")
        assert ORDERS_1 in fetched


def test_it_is_answered_when_who_stops_is_done() -> None:
    with following() as play:
        play.take(replicas_stopped=8)
        play >> stop((5, False)) >> after_ms(7) >> after_ms(1) << "StopReplica: NONE NONE"


def test_a_partition_that_is_not_hosted_is_stopped_without_error() -> None:
    with Hosting() as play:
        play >> stop((3, True)) << "StopReplica: NONE NONE"


def test_without_the_delete_flag_a_leader_still_believes_that_it_leads() -> None:
    with leading() as play:
        (
            play
            >> stop((5, False))
            << "StopReplica: NONE NONE"
            >> produce(acks=1)
            << "produce: NONE at 10"
        )
        assert play.hosted().is_leader


def test_with_it_partition_log_and_checkpoint_are_gone() -> None:
    with leading() as play:
        play.logs.checkpoint_high_watermarks()
        play >> stop((-2, True)) << "StopReplica: NONE NONE"
        assert ORDERS_0 not in play.replicas.partitions
        assert ORDERS_0 not in play.disk.logs
        assert ORDERS_0 not in play.disk.checkpointed_high_watermarks


def test_what_was_parked_is_answered() -> None:
    with leading() as play:
        play.zookeeper.presets.clear()
        (
            play
            >> update_metadata(state_of())
            << "UpdateMetadata: done"
            >> produce()
            >> fetch(2, at=11)
            >> stop((-2, True))
            << "fetch-2: NOT_LEADER_OR_FOLLOWER"
            << "produce: NOT_LEADER_OR_FOLLOWER"
            << "StopReplica: NONE NONE"
        )


def test_an_older_controller_is_refused_as_a_whole() -> None:
    with following() as play:
        (
            play
            >> stop((5, False), controller_epoch=6)
            << "StopReplica refused: STALE_CONTROLLER_EPOCH"
            << "StopReplica: STALE_CONTROLLER_EPOCH"
        )
        assert ORDERS_0 in play.fetchers.threads[2, 0].partitions
