"""`isr why`: the story of one ISR change, with the numbers of a real one."""

from __future__ import annotations

import io
import json

import msgspec
import pytest
from rich.console import Console

from emulator.kafka.profiles.guards.base import guards as guards_by_name
from emulator.trace import events as e
from emulator.trace.reader import Header
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import Lagging, LoggedOp, TopicPartition
from emulator.view.event_text import scene
from emulator.view.why import (
    BY_TIME_ONLY,
    EPOCH_START,
    HALF_LAG,
    LOG_END,
    NOTIFICATIONS,
    NoSuchChange,
    Story,
    explain_version,
)
from emulator.view.why_text import headline, lines, render_why
from emulator.view.wording import describe_event
from tests.unit.view.recorded import recorded
from tests.unit.view.traces import HEADER, P0, Script


def story_of(recording: str, version: int) -> Story:
    return explain_version(Timeline(recorded(recording)), HEADER, P0, version)


def told(story: Story) -> str:
    return "\n".join([headline(story), *(f"{name}: {text}" for name, text in lines(story))])


def test_a_shrink_that_nobody_was_ever_shown() -> None:
    assert told(story_of("shrink-expand", 1)) == (
        "orders-0@v1  ISR shrinks [1,2,3] → [1,3], by leader 1 (leader epoch 0, 7.769 s)\n"
        "leader saw: follower 2 at LEO 60 of 118, HW 60, last caught up 2.859 s ago\n"
        "rule: not at the leader's LEO, and 2.859 s > replica.lag.time.max.ms 2 s:"
        " out of sync (checked every 1 s)\n"
        "fault: broker 2 paused from 4.910 s to 10.910 s\n"
        "write: expected v0: v1 ok, 4 ms after the decision;"
        " acknowledged to the leader 2 ms later\n"
        "held back: checked every 2.5 s; the controller is notified after 5 s without changes,"
        " or 60 s after the last notification\n"
        ": too early 4 times, 7.784 s to 15.284 s: quiet for at most 4.4 s\n"
        ": a later change by the same leader restarted the 5 s wait\n"
        "notified: isr_change_…0 at 17.784 s: quiet for 6.9 s\n"
        "broker 1: showed the old [1,2,3] v0 for 10 s, then v2 at 17.799 s (v1 never)\n"
        "broker 2: showed the old [1,2,3] v0 for 10 s, then v2 at 17.800 s (v1 never)\n"
        "broker 3: showed the old [1,2,3] v0 for 10 s, then v2 at 17.801 s (v1 never)\n"
        "never shown: v1 never reached any broker's metadata: v2 superseded it\n"
        "path: decision ─4 ms→ ZooKeeper ─10 s→ notification ─15 ms to 17 ms→"
        " metadata of [1,2,3]; 10 s in all"
    )


def test_an_expand_asks_for_the_high_watermark_and_not_for_the_lag() -> None:
    script = Script().shrink_and_late_news()
    script.at(14000).add(e.FollowerStateUpdated, 1, P0, 2, 118, 118, 14000)
    script.changes((1, 3), (1, 3, 2), 2)
    text = told(explain_version(Timeline(script.events), HEADER, P0, 2))
    assert "leader saw: follower 2 at LEO 118 of 118, HW 60\n" in text
    assert "rule: LEO 118 ≥ HW 60 and ≥ the epoch's first offset: in sync" in text
    assert "joining does not depend on replica.lag.time.max.ms" in text
    assert "notified: never" in text


def older(*without: str, **defaults: str) -> Header:
    """The header of a version that lacks these fixes."""
    guards = tuple(sorted(set(guards_by_name()) - {*without}))
    settings = {name.replace("_", "."): value for name, value in defaults.items()}
    return Header(1, "by-hand", 7, "0.8.2", "simulated", {}, settings, guards)


def rules(header: Header, behind: int) -> str:
    script = Script().shrink_and_late_news()
    script.at(20000).changes((1, 3), (1,), 2, Lagging(3, 118 - behind, 900))
    return told(explain_version(Timeline(script.events), header, P0, 2))


def test_before_0_9_a_follower_was_late_by_records_or_by_its_last_fetch() -> None:
    header = older(BY_TIME_ONLY, HALF_LAG, LOG_END, NOTIFICATIONS,
                   replica_lag_max_messages="4", replica_lag_time_max_ms="800")  # fmt: skip
    assert "rule: 5 records behind > replica.lag.max.messages 4: out of sync" in rules(header, 5)
    text = rules(header, 4)
    assert "rule: 900 ms > replica.lag.time.max.ms 800 ms: out of sync" in text
    assert "last fetched 900 ms ago" in text
    assert "(checked every 800 ms)" in text
    assert "notified: never: this version of Kafka sends no notification" in text
    assert "never shown: v2 never reached any broker's metadata: no broker was notified" in text


def test_the_names_of_fixes_are_those_of_the_profiles() -> None:
    names = {BY_TIME_ONLY, HALF_LAG, LOG_END, EPOCH_START, NOTIFICATIONS}
    assert names <= set(guards_by_name())


def test_before_2_0_1_the_epochs_first_offset_did_not_matter() -> None:
    script = Script().shrink_and_late_news()
    script.at(14000).add(e.FollowerStateUpdated, 1, P0, 2, 118, 118, 14000)
    script.changes((1, 3), (1, 3, 2), 2)
    text = told(explain_version(Timeline(script.events), older(EPOCH_START), P0, 2))
    assert "rule: LEO 118 ≥ HW 60: in sync" in text


def test_after_a_minute_it_is_told_without_quiet() -> None:
    story = story_of("flapping", 24)
    assert "quiet for only 9 ms, but the last notification was 60.8 s ago" in told(story)
    assert story.later_changes == 1


def test_twenty_looks_are_one_line() -> None:
    text = told(story_of("flapping", 1))
    assert "too early 20 times, 7.827 s to 55.327 s: quiet for at most 3 s" in text
    assert "24 later changes by the same leader" in text
    assert len(text.splitlines()) <= 15


def test_the_first_state_is_the_controllers_own() -> None:
    text = told(story_of("shrink-expand", 0))
    assert text.startswith("orders-0@v0  created with ISR [1,2,3], leader 1, by controller 3")
    assert "decided by: the controller" in text


def test_a_broker_that_never_heard_of_it() -> None:
    story = explain_version(Timeline(Script().shrink_and_late_news().events), HEADER, P0, 1)
    assert "broker 2: showed the old [1,2,3] v0 for 7 s, and nothing newer" in told(story)
    assert "path: decision ─4 ms→ ZooKeeper ─7 s→ notification ─8 ms→ controller" in told(story)


def test_refused_tries_before_it_are_counted() -> None:
    script = Script().shrink_and_late_news()
    for at in (20000, 21000):
        script.at(at).decides((1, 3), (1,), 0)
        script.add(e.IsrUpdateRejected, 1, P0, "shrink", 0)
    script.at(22000).changes((1, 3), (1,), 2)
    assert explain_version(Timeline(script.events), HEADER, P0, 2).refused == 2


@pytest.mark.parametrize(
    ("partition", "version", "message"),
    [
        ("orders", 9, "orders-0@v9: no such version; the run has v0 to v2"),
        ("clicks", 1, "clicks-0: no such partition in this run"),
    ],
)
def test_what_does_not_exist_is_said_with_what_does(
    partition: str, version: int, message: str
) -> None:
    timeline = Timeline(recorded("shrink-expand"))
    with pytest.raises(NoSuchChange, match="^" + message):
        explain_version(timeline, HEADER, TopicPartition(partition, 0), version)


def test_as_json_it_has_every_number() -> None:
    story = json.loads(json.dumps(msgspec.to_builtins(story_of("shrink-expand", 1))))
    assert story["change"] == "shrink"
    assert story["followers"] == [{"replica": 2, "leo": 60, "behind_ms": 2859}]
    assert [leg["to"] for leg in story["legs"]] == [
        "ZooKeeper",
        "leader",
        "notification",
        "broker 1",
        "broker 2",
        "broker 3",
    ]
    assert story["shown"][0]["old_ms"] == 10026.0
    assert story["never_shown"] is True


def test_it_fits_a_terminal() -> None:
    out = io.StringIO()
    Console(file=out, width=80, no_color=True).print(render_why(story_of("shrink-expand", 1)))
    assert max(len(line.rstrip()) for line in out.getvalue().splitlines()) <= 80


def crash_and_election(*, asked: bool = False) -> Script:
    """Broker 1 leads and is killed at 5 s (or closes its session); 2 is elected."""
    script = Script()
    script.action("up")
    script.create((1, 2, 3))
    script.at(5000).action("kill", broker=1)
    script.at(10_448)
    if asked:
        script.add(e.ZkRequest, 1, "closeSession")
    script.add(e.ZkTransaction, 1, 90, "closeSession")
    script.add(e.ControllerEventQueued, 3, "BrokerChange", 0)
    script.add(e.BrokerChange, 3, (), (1,), (), (2, 3))
    state = '{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":1,"isr":[2,3]}'
    check = LoggedOp("check", "/controller_epoch", version=2)
    op = LoggedOp("setData", "/brokers/topics/orders/partitions/0/state", state, 1)
    script.add(e.ZkTransaction, 3, 91, "multi", None, None, None, False, (check, op))
    return script


def test_an_election_is_told_from_its_first_cause() -> None:
    text = told(explain_version(Timeline(crash_and_election().events), HEADER, P0, 1))
    assert text.startswith("orders-0@v1  leader 1 → 2, ISR [1,2,3] → [2,3], by controller 3")
    assert "cause: 5.000 s  broker 1 killed\n" in text
    assert ": 10.448 s  the ZooKeeper session of broker 1 ended\n" in text
    assert ": 10.448 s  controller 3 found [1] dead\n" in text
    assert "unclean" not in text


def test_an_unclean_election_is_called_so() -> None:
    script = crash_and_election()
    script.at(12_000)
    state = '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":2,"isr":[1]}'
    check = LoggedOp("check", "/controller_epoch", version=2)
    op = LoggedOp("setData", "/brokers/topics/orders/partitions/0/state", state, 2)
    script.add(e.ZkTransaction, 3, 92, "multi", None, None, None, False, (check, op))
    text = told(explain_version(Timeline(script.events), HEADER, P0, 2))
    assert "unclean: 1 was not in the ISR [2,3]\n" in text
    assert "because" not in text


@pytest.mark.parametrize(
    ("asked", "said"), [(False, "session of broker 1 expired"), (True, "session closed")]
)
def test_a_session_that_ran_out_is_told_from_one_that_was_closed(asked: bool, said: str) -> None:
    script = crash_and_election(asked=asked)
    event = next(one for one in script.events if getattr(one, "op", "") == "closeSession")
    if asked:
        event = script.events[event.seq + 1]
    assert describe_event(event, scene(Timeline(script.events))).headline == said
