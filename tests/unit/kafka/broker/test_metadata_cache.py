"""A broker's metadata: partitions merged, brokers replaced, the newest wins (§4.5)."""

from __future__ import annotations

from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.protocol.messages import LiveBroker, UpdateMetadataRequest
from emulator.trace import events
from emulator.trace.values import PartitionState
from tests.interaction.hosting import LIVE, ORDERS_0, ORDERS_1, state_of
from tests.interaction.playbook import Playbook


def update(
    play: Playbook,
    cache: MetadataCache,
    *states: PartitionState,
    live: tuple[LiveBroker, ...] = LIVE,
    controller: int = 2,
) -> tuple[object, ...]:
    removed = play.run(cache.update(UpdateMetadataRequest(controller, 7, -1, states, live)))
    assert isinstance(removed, tuple)
    return removed


def test_partitions_are_merged_and_an_empty_request_keeps_them_all() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        update(play, cache, state_of())
        update(play, cache, state_of(ORDERS_1))
        update(play, cache)
        assert [s.partition for s in cache.metadata(()).partitions] == [ORDERS_0, ORDERS_1]


def test_live_brokers_are_replaced_every_time() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        update(play, cache)
        update(play, cache, live=LIVE[:1])
        assert cache.alive_broker(1) == LIVE[0]
        assert cache.alive_broker(2) is None
        assert cache.metadata(()).brokers == LIVE[:1]


def test_the_newest_request_wins_even_with_an_older_version_and_epoch() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        update(play, cache, state_of(epoch=9, version=20))
        update(play, cache, state_of(epoch=1, version=2, isr=(3,)))
        found = cache.partition(ORDERS_0)
        assert found is not None
        assert (found.leader_epoch, found.zk_version, found.isr) == (1, 2, (3,))


def test_a_leader_during_delete_removes_the_partition() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        update(play, cache, state_of(), state_of(ORDERS_1))
        assert update(play, cache, state_of(leader=-2)) == (ORDERS_0,)
        assert cache.partition(ORDERS_0) is None
        assert cache.topics() == {"orders"}
        update(play, cache, state_of(ORDERS_1, leader=-2))
        assert cache.topics() == set()


def test_a_negative_controller_is_none() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        assert cache.metadata(()).controller_id == -1
        update(play, cache)
        assert cache.metadata(()).controller_id == 2
        update(play, cache, controller=-1)
        assert (cache.controller_id, cache.metadata(()).controller_id) == (None, -1)


def test_who_asks_for_topics_gets_those() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        update(play, cache, state_of(), state_of(ORDERS_0._replace(topic="other")))
        assert [s.partition.topic for s in cache.metadata(("other",)).partitions] == ["other"]


def test_a_snapshot_that_was_handed_out_does_not_change_any_more() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        update(play, cache, state_of(isr=(1, 2)))
        before = cache.metadata(())
        update(play, cache, state_of(isr=(1,)))
        assert [s.isr for s in before.partitions] == [(1, 2)]


def test_every_update_is_on_the_trace_with_what_it_changed() -> None:
    with Playbook() as play:
        cache = MetadataCache(play.context)
        update(play, cache, state_of(), state_of(ORDERS_1, leader=-2))
        (event,) = [e for e in play.sink.events if isinstance(e, events.MetadataCacheUpdated)]
        assert [s.partition for s in event.states] == [ORDERS_0]
        assert (event.removed, event.live_brokers) == ((ORDERS_1,), (1, 2, 3))


def test_an_answer_says_which_metadata_a_version_can() -> None:
    """Its clients believe leader epochs from 9 on."""
    for profile, version in (("0.8.2", 0), ("1.1", 5), ("2.1", 7), ("2.4", 9), ("2.8", 9)):
        with Playbook(profile=profile) as play:
            assert MetadataCache(play.context).metadata(()).version == version
