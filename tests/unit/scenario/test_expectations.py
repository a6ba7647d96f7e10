"""Every expectation has a trace that keeps it, one that breaks it, one that never comes to it."""

from __future__ import annotations

import pytest

from emulator.scenario.errors import UserError
from emulator.scenario.expectations.base import Judge, checks, forms, parse, verdict
from emulator.trace import events as e
from emulator.trace.state import TraceState
from tests.unit.scenario.story import ORDERS, Story, judged, observe
from tests.unit.view.recorded import recorded


def shrink_and_expand() -> Story:
    story = Story().created().at(7.5).written(1, 1, 3)
    return story.at(11).written(2, 1, 3, 2, change="expand").at(17).notified().shown(2, 1, 3, 2)


def quiet() -> Story:
    return Story().created()


HISTORY = "isr of orders-0 goes [1, 2, 3] -> [1, 3] -> [1, 3, 2]"


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (HISTORY, True),
        ("isr of orders-0 goes [1, 2, 3] -> [1, 3] -> [1, 2, 3]", False),
        ("isr of orders-0 goes [1, 2, 3] -> [1, 3]", False),
        ("isr of orders-0 becomes [1, 3]", True),
        ("isr of orders-0 becomes [3, 1]", False),
        ("isr of orders-0 becomes [1, 2, 3]", False),
        ("isr of orders-0 becomes [1, 3] between 7s and 8s", True),
        ("isr of orders-0 becomes [1, 3] between 8s and 9s", False),
        ("isr of orders-0 at end is {1, 2, 3}", True),
        ("isr of orders-0 returns to {1, 2, 3}", True),
        ("isr of orders-0 at end is [1, 3, 2]", True),
        ("isr of orders-0 at end is [1, 2, 3]", False),
        ("isr of orders-0 at end is {1, 3}", False),
        ("isr changes: 2", True),
        ("isr shrinks: 1", True),
        ("isr expands: 2", False),
        ("notifications: 1", True),
        ("notifications: at least 2", False),
        ("notifications: at most 1", True),
        ("notifications: between 2 and 3", False),
        ("conflicts: 0", True),
        ("versions never shown: 3", True),
        ("metadata of orders-0 never shows v1", True),
        ("metadata of orders-0 never shows v1 to v2", False),
        ("metadata of orders-0 shows v2", True),
        ("metadata of orders-0 shows v1", False),
        ("metadata of orders-0 is stale for at least 9s", True),
        ("metadata of orders-0 is stale for at least 10s", False),
        ("metadata of orders-0 is stale for at most 10s", True),
        ("metadata of orders-0 at broker 2 is stale for at most 9s", False),
    ],
)
def test_a_shrink_and_an_expand_are_held_against(text: str, held: bool) -> None:
    assert judged(text, shrink_and_expand()).held is held


@pytest.mark.parametrize(
    "text",
    [
        "isr of orders-0 at end is {1, 2, 3}",
        "isr of orders-0 returns to {1, 2, 3}",
        "conflicts: 0",
        "notifications: at most 3",
        "metadata of orders-0 never shows v1",
        "metadata of orders-0 is stale for at most 10s",
        "no acknowledged record of orders is lost",
        "records of orders acknowledged: at least 1",
        "isr of orders-0 keeps 2 although it is behind for at least 1s",
        "2 gets records of every partition of orders at least every 3s while it is behind",
    ],
)
def test_a_run_in_which_nothing_happens_leaves_unknown(text: str) -> None:
    assert judged(text, quiet()).held is None


def test_no_expectation_holds_of_a_run_in_which_nothing_happens() -> None:
    """Every form of every kind, with arguments that would suit: none may be content."""
    samples = {
        "TOPIC-N": "orders-0", "TOPIC": "orders", "BROKER": "2", "NUMBER": "1", "vN": "v1",
        "N|at least N|at most N|between N and M": "at least 1", "5s": "5s", "ERROR": "X",
        "LEADER|none": "2",
    }  # fmt: skip
    for name, of_kind in forms().items():
        words = {"|".join(phrases): phrases[0] for phrases in checks()[name].words.values()}
        for form in of_kind:
            text = form.shown
            for sample, value in {**words, **samples}.items():
                text = text.replace(sample, value)
            assert judged(text, quiet()).held is not True, text


def test_a_record_that_the_final_leader_lacks_is_lost() -> None:
    story = quiet().at(2).appended(1, 0, 5).produced(0, 5).at(3).written(1, 1, 3)
    kept = judged("no acknowledged record of orders is lost", story)
    assert kept.held is True
    story.at(4).tell(e.LogTruncated, 1, ORDERS, 5, 3)
    broken = judged("no acknowledged record of orders is lost", story)
    assert broken.held is False
    assert broken.seen == "2 of 5 are"


def test_another_record_at_the_same_offset_does_not_replace_a_lost_one() -> None:
    story = quiet().at(2).appended(1, 0, 5).produced(0, 5).at(3).written(1, 1, 3)
    story.at(4).tell(e.LogTruncated, 1, ORDERS, 5, 3).appended(1, 3, 9, epoch=1)
    assert judged("no acknowledged record of orders is lost", story).seen == "2 of 5 are"


def test_an_answer_to_acks_all_is_of_who_has_committed_it_not_of_a_deposed_leader_that_wrote() -> (
    None
):
    story = quiet().at(2).tell(e.ControllerCacheUpdated, 3, ORDERS, 2, 1, (2, 3), 1, "election")
    story.tell(e.BecomesLeader, 2, ORDERS, 1, 0, 0)
    story.tell(e.RecordsAppended, 2, ORDERS, "leader", 0, 1, 1, 100).hw(2, 1, 1)
    story.appended(1, 0, 1).produced(0, 1)
    assert judged("no acknowledged record of orders is lost", story).held is True


def test_producers_results_are_counted_by_error() -> None:
    story = quiet().at(2).produced(0, 7).produced(-1, 3, result="NOT_ENOUGH_REPLICAS")
    story.produced(-1, 1, result="REQUEST_TIMED_OUT")
    assert judged("records of orders acknowledged: 7", story).held is True
    assert judged("records of orders acknowledged: at least 8", story).held is False
    assert judged("records of orders refused: 3 (NOT_ENOUGH_REPLICAS)", story).held is True
    assert judged("records of orders refused: 4 (NOT_ENOUGH_REPLICAS)", story).held is False
    assert judged("records of orders refused: 4", story).held is True


def sixth_record(fetches: int) -> Story:
    story = quiet().at(2).appended(1, 0, 5).appended(2, 0, 5).hw(1, 5, 5)
    story.at(6).appended(1, 5, 6).fetched(2, 5).at(6.1).appended(2, 5, 6)
    for _ in range(fetches):
        story.fetched(2, 6)
    return story.at(6.3).hw(1, 6, 6).at(6.8).hw(2, 6, 6)


def test_the_high_watermark_moves_one_fetch_after_the_follower_has_the_record() -> None:
    text = "hw of orders-0 at broker 1 goes 5 -> 6 one fetch after broker 2 has the record"
    assert judged(text, sixth_record(fetches=1)).held is True
    assert judged(text, sixth_record(fetches=0)).held is False
    assert judged(text, sixth_record(fetches=2)).held is False
    assert judged(text, quiet()).held is False


def test_a_follower_learns_the_high_watermark_later() -> None:
    text = "hw of orders-0 reaches 6 at broker 2 at least 400ms after broker 1"
    assert judged(text, sixth_record(1)).held is True
    assert judged(text.replace("400", "600"), sixth_record(1)).held is False
    assert judged(text.replace("least", "most"), sixth_record(1)).held is False
    assert (
        judged("hw of orders-0 reaches 7 at broker 2 at most 1s after broker 1", quiet()).held
        is False
    )


@pytest.mark.parametrize("words", ["does not advance", "stands still"])
def test_the_high_watermark_stands_still_while_a_follower_lags(words: str) -> None:
    """In the words of today, and in those that stored runs have."""
    text = f"hw of orders-0 {words} for at least 1s while records arrive"
    story = quiet().at(5).appended(1, 0, 1).at(6.5).hw(1, 1, 1)
    assert judged(text, story).held is True
    assert judged(text.replace("1s", "2s"), story).held is False
    assert judged(text, quiet().at(5).appended(1, 0, 1).at(5.1).hw(1, 1, 1), end=9).held is False
    assert judged(text, quiet().at(5).appended(1, 0, 1), end=6).held is True


def test_a_log_starts_behind_the_records_that_were_deleted() -> None:
    story = quiet().appended(1, 0, 9).tell(e.LogStartMoved, 1, ORDERS, 4, 9, 9, "a reason")
    assert judged("log of orders-0 at broker 1 starts at 4", story).held is True
    assert judged("log of orders-0 at broker 2 starts at 4", story).held is False
    assert judged("log of orders-0 at broker 2 starts at 0", story).held is None


@pytest.mark.parametrize(
    "text",
    [
        "log of orders-0 at broker 1 starts at 4",
        "hw of orders-0 does not advance for at least 1s while records arrive",
        "hw of orders-0 reaches 6 at broker 2 at least 400ms after broker 1",
        "hw of orders-0 at broker 1 goes 5 -> 6 one fetch after broker 2 has the record",
        "isr of orders-0 keeps 2 although it is behind for at least 1s",
        "2 leaves isr of orders-0 while fetching at least every 1s",
        "records lost: at least 1",
        "conflicts: at least 1",
        "notifications deleted unread: 1",
        "no acknowledged record of orders is lost",
    ],
)
def test_what_the_logs_of_real_kafka_cannot_tell_is_unknown(text: str) -> None:
    """They tell of leaders' high watermarks and of no record, fetch or answer of ZooKeeper's."""
    story = quiet().tell(e.ControllerElected, 3, 1, 1).at(5).produced(0, 1).hw(1, 1, 0)
    assert judged(text, story.at(8).shrinks(2, after_ms=-1)).held is None


def test_a_follower_that_lags_and_stays_is_told_from_one_that_leaves() -> None:
    text = "isr of orders-0 keeps 2 although it is behind for at least 1s"
    story = quiet().at(5).appended(1, 0, 9).at(6.2).appended(2, 0, 9)
    assert judged(text, story).held is True
    assert judged(text.replace("1s", "2s"), story).held is None
    assert judged(text, story.at(7).written(1, 1, 3)).held is False


def test_a_follower_that_leaves_while_it_fetches() -> None:
    text = "2 leaves isr of orders-0 while fetching at least every 1s"

    def fetching(*times: float) -> Story:
        story = quiet()
        for t in times:
            story.at(t).fetched(2, 1)
        return story.at(8).shrinks(2, after_ms=2500)

    assert judged(text, fetching(5.6, 6.3, 7.2)).held is True
    assert judged(text, fetching(5.6, 7.2)).held is False
    assert judged(text, quiet()).held is False
    assert judged(text, quiet().at(8).shrinks(3, after_ms=2500)).held is False


def test_a_partition_that_starves_is_told_from_those_that_take_turns() -> None:
    text = "2 gets records of every partition of orders at least every 3s while it is behind"

    def turns(*order: int) -> Story:
        story = Story()
        for p in (0, 1):
            story.on(p).created().at(2).appended(1, 0, 100)
        ends = {0: 0, 1: 0}
        for i, p in enumerate(order):
            base, ends[p] = ends[p], ends[p] + 1
            story.on(p).at(3.5 + i).appended(2, base, base + 1)
        return story

    assert judged(text, turns(0, 1, 0, 1, 0, 1)).held is True
    assert judged(text, turns(0, 0, 0, 0, 0, 1)).held is False
    assert judged(text, turns(0, 0, 0, 0)).held is False
    assert judged(text, turns(0)).held is None


@pytest.mark.parametrize(
    ("recording", "text"),
    [
        ("shrink-expand", HISTORY),
        ("shrink-expand", "notifications: 1"),
        ("flapping", "isr changes: 38"),
        ("flapping", "notifications: 2"),
        ("flapping", "metadata of orders-0 never shows v1 to v24"),
        ("flapping", "metadata of orders-0 is stale for at least 45s"),
        ("flapping", "isr of orders-0 returns to {1, 2, 3}"),
        ("controller-paused", "isr of orders-0 goes [1, 2, 3] -> [1, 2] -> [1, 2, 3]"),
        ("controller-paused", "metadata of orders-0 is stale for at least 7s"),
        ("min-isr-pauses", "records of orders refused: at least 10 (NOT_ENOUGH_REPLICAS)"),
        (
            "min-isr-pauses",
            "isr of orders-0 goes [1, 2, 3] -> [1, 3] -> [1] -> [1, 2] -> [1, 2, 3]",
        ),
    ],
)
def test_what_the_scenarios_expect_held_of_real_kafka(recording: str, text: str) -> None:
    observed = TraceState(())
    judge = Judge([parse(text)], observed)
    for event in recorded(recording):
        observed(event)
        judge(event)
    ((_, finding),) = judge.findings()
    assert finding.held is True, finding.seen


@pytest.mark.parametrize(
    ("bound", "held"),
    [("at least 300ms", True), ("at least 301ms", False), ("at most 299ms", False)],
)
def test_how_long_a_change_is_only_decided(bound: str, held: bool) -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100).at(7.3).written(1, 1, 3)
    expands = ORDERS, "expand", (1, 3), (1, 3, 2), 0, 9, 0, 1
    story.at(9).tell(e.IsrUpdateStarted, 1, *expands)
    story.at(9.1).written(2, 1, 3, 2, change="expand")
    story.at(12).shrinks(3, after_ms=2100)
    text = f"the slowest isr change of orders takes {bound} to take effect"
    assert judged(text, story).held is held


def test_a_change_that_is_never_in_force_has_no_length() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100)
    text = "the slowest isr change of orders takes at most 1s to take effect"
    assert judged(text, story, end=20).held is None


def test_every_kind_has_a_form_and_is_found_by_its_file_name() -> None:
    assert {"isr_becomes", "isr_history", "counts", "nothing_lost"} <= set(checks())
    assert all(forms()[name] for name in checks())


def test_a_sentence_that_means_nothing_is_answered_with_the_nearest_forms() -> None:
    with pytest.raises(UserError, match=r"isr of TOPIC-N becomes \[1, 2\]"):
        parse("isr of orders-0 becomes small")


def test_one_that_is_broken_outweighs_one_that_is_unknown() -> None:
    assert verdict([True, None, False]) is False
    assert verdict([True, None]) is None
    assert verdict([True]) is True
    assert verdict([]) is True


def test_a_story_without_a_clock_begins_at_zero() -> None:
    assert observe(quiet()).clock.since_up(5) == 5
