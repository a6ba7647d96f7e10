"""The derivation: histories, caches, staleness, attempts and notifications, from traces by hand."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from emulator.trace import events as e
from emulator.trace.state.spans import OPEN, span_at
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import LoggedOp, TopicPartition
from tests.unit.view.traces import P0, STATE, Script

MS = 1000


def test_a_write_is_known_to_zookeeper_at_once_and_to_a_broker_with_its_update_metadata() -> None:
    timeline = Timeline(Script().shrink_and_late_news().events)
    history = timeline.states(P0)
    assert [(w.version, w.isr, w.by, w.by_controller) for w in history] == [
        (0, (1, 2, 3), 3, True),
        (1, (1, 3), 1, False),
    ]
    (stale,) = timeline.state.staleness.of(1, P0)
    assert (stale.version, stale.missed) == (0, (1,))
    assert (stale.from_us, stale.to_us) == (5504 * MS, 12512 * MS)


def test_a_broker_that_never_hears_of_it_is_stale_to_the_end() -> None:
    timeline = Timeline(Script().shrink_and_late_news().events)
    (stale,) = timeline.state.staleness.of(2, P0)
    assert stale.to_us == timeline.end_us


def test_a_notification_lives_until_the_controller_deletes_it() -> None:
    script = Script().shrink_and_late_news()
    path = "/isr_change_notification/isr_change_0000000000"
    check = LoggedOp("check", "/controller_epoch", version=2)
    script.at(12520).add(
        e.ZkTransaction, 3, 99, "multi", None, None, None, False, (check, LoggedOp("delete", path))
    )
    script.at(13000).action("produce_stop")
    (node,) = Timeline(script.events).state.notifications.all
    assert (node.by, node.partitions, node.cleared_by) == (1, (P0,), 3)
    assert (node.from_us, node.to_us) == (12500 * MS, 12520 * MS)
    assert node.sent is not None
    assert node.sent.quiet_ms == 6994


def test_an_attempt_ends_as_the_leader_says() -> None:
    script = Script().shrink_and_late_news()
    script.at(20000).decides((1, 2, 3), (1, 2), 0)
    rejected = script.add(e.IsrUpdateRejected, 1, P0, "shrink", 0)
    first, second = Timeline(script.events).attempts(P0)
    assert isinstance(first.ended, e.IsrUpdated)
    assert second.ended is rejected


def test_a_multi_that_failed_changed_nothing() -> None:
    script = Script()
    script.at(0).create((1, 2))
    ops = (LoggedOp("setData", STATE.format(*P0), "{}", 1), LoggedOp("error", code=-103))
    script.add(e.ZkTransaction, 3, 5, "multi", None, None, None, False, ops)
    assert [write.version for write in Timeline(script.events).states(P0)] == [0]


def test_garbage_in_a_state_znode_is_a_version_like_any_other() -> None:
    script = Script()
    script.at(0).create((1, 2))
    script.add(e.ZkTransaction, 0, 5, "setData", STATE.format(*P0), "garbage", 1)
    _, garbage = Timeline(script.events).states(P0)
    assert (garbage.version, garbage.leader, garbage.isr) == (1, -1, ())


def test_a_process_that_starts_anew_has_an_empty_cache() -> None:
    script = Script().shrink_and_late_news()
    script.at(15000).action("kill", broker=2)
    script.at(16000).add(e.BrokerStarting, 2, "2.6")
    script.at(17000).shows(2, 1, (1, 3))
    script.at(18000).action("produce_stop")
    timeline = Timeline(script.events)
    assert [(s.from_us, s.to_us) for s in timeline.state.staleness.of(2, P0)] == [
        (5504 * MS, 15000 * MS)
    ]
    assert span_at(timeline.state.metadata.spans(2, P0), 16500 * MS) is None


def test_the_same_entry_again_is_no_news() -> None:
    script = Script()
    script.at(0).create((1, 2))
    script.shows(1, 0, (1, 2))
    script.at(5).shows(1, 0, (1, 2))
    assert len(Timeline(script.events).state.metadata.spans(1, P0)) == 1


def test_who_was_controller_when() -> None:
    script = Script()
    script.at(1).add(e.ControllerElected, 3, 1, 1)
    script.at(5).add(e.ControllerResigned, 3, 1)
    script.at(8).add(e.ControllerElected, 2, 2, 2)
    script.at(9).action("produce_stop")
    terms = Timeline(script.events).state.controller.terms
    assert [(term.broker, term.from_us, term.to_us) for term in terms] == [
        (3, 1 * MS, 5 * MS),
        (2, 8 * MS, OPEN),
    ]


def test_order_of_the_trace_does_not_matter() -> None:
    events = Script().shrink_and_late_news().events
    assert Timeline(reversed(events)).states(P0) == Timeline(events).states(P0)


# -- staleness against brute force -----------------------------------------------------------------

Steps = list[tuple[str, int, int]]
steps = st.lists(
    st.tuples(
        st.sampled_from(("write", "show", "show", "remove", "delete", "restart")),
        st.integers(1, 2),
        st.integers(0, 3),
    ),
    max_size=40,
)


Version = tuple[int, int] | None
"""How often the topic had been made, and the version of its state."""


def played(happens: Steps) -> tuple[Script, dict[int, list[Version]], list[Version]]:
    """The trace; and per instant, what each broker showed and what ZooKeeper had."""
    script = Script()
    truth: list[Version] = []
    shown: dict[int, list[Version]] = {1: [], 2: []}
    now: int | None = None
    made = 0
    cached: dict[int, Version] = {1: None, 2: None}
    for at, (what, broker, back) in enumerate(happens):
        script.at(at)
        if what == "write":
            made += now is None
            now = 0 if now is None else now + 1
            script.create((1,)) if now == 0 else script.write(1, now, (1,))
        elif what == "show" and now is not None:
            cached[broker] = made, max(now - back, 0)
            script.shows(broker, max(now - back, 0), (1,))
        elif what == "remove":
            cached[broker] = None
            script.add(e.MetadataCacheUpdated, broker, 3, 1, (), (), (P0,))
        elif what == "delete" and now is not None:
            now = None
            script.delete()
        elif what == "restart":
            cached[broker] = None
            script.add(e.BrokerStarting, broker, "2.6")
        truth.append(None if now is None else (made, now))
        for one, versions in shown.items():
            versions.append(cached[one])
    script.at(len(happens)).action("produce_stop")
    return script, shown, truth


@example([("write", 1, 0), ("show", 1, 0), ("delete", 1, 0), ("write", 1, 0), ("show", 1, 0)])
@given(steps)
def test_stale_is_when_a_cache_shows_an_older_version_than_zookeeper_has(happens: Steps) -> None:
    script, shown, truth = played(happens)
    timeline = Timeline(script.events)
    for broker, versions in shown.items():
        spans = timeline.state.staleness.of(broker, P0)
        for at, (version, now) in enumerate(zip(versions, truth, strict=True)):
            is_older = version is not None and now is not None and version < now
            inside = [s for s in spans if s.from_us <= at * MS < s.to_us]
            assert bool(inside) == is_older, (broker, at)
            for stale in inside:
                assert version is not None and stale.version == version[1]
                assert now is not None and now[1] in stale.missed


def test_partitions_are_told_apart() -> None:
    script = Script().shrink_and_late_news()
    other = TopicPartition("orders", 1)
    script.at(14000).create((2, 3), other)
    timeline = Timeline(script.events)
    assert timeline.partitions == (P0, other)
    assert timeline.state.staleness.of(1, other) == []
