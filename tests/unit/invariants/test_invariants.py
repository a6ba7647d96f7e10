"""Each invariant with a trace that keeps it and one that breaks it: one word of the story
differs."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from emulator.invariants.base import chain_of, check, invariants
from emulator.trace import events as e
from emulator.trace.values import EpochRun, LoggedOp, PartitionState
from tests.unit.invariants.history import (
    ORDERS,
    REPLICAS,
    STATE,
    History,
    broken,
    payload,
    violations,
)
from tests.unit.invariants.of_hazards import CASES as OF_HAZARDS
from tests.unit.invariants.of_hazards import Case, expelled_after_a_fetch_from, quiet


def with_records() -> History:
    """Five records everywhere, committed."""
    return quiet().appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5)


def reelected(*, leader: int, epoch: int = 1) -> History:
    """The controller makes `leader` lead."""
    isr = (leader, *(r for r in (2, 3) if r != leader))
    history = with_records().wrote(3, leader, epoch, *isr, by="controller")
    return history.told(leader, epoch, *isr)


def obeyed(epoch: int) -> History:
    state = PartitionState(ORDERS, 1, 1, epoch, REPLICAS, 0, REPLICAS)
    history = quiet().tell(e.LeaderAndIsr, 2, 3, 1, state)
    return history.tell(e.BecomesFollower, 2, ORDERS, 1, epoch, 0, 0)


def joining(leo: int) -> History:
    """3 leaves, five more are committed without it, and it joins again with `leo` records."""
    history = with_records().wrote(1, 1, 0, 1, 2)
    history.tell(e.IsrUpdated, 1, ORDERS, "shrink", (1, 2), 1, 0)
    history.appended(1, 5, 10).copied(5, 10, 2).hw(1, 10).copied(5, leo, 3)
    return history.wrote(1, 1, 0, 1, 2, 3)


def cut_to(offset: int, epoch: int = 0) -> History:
    """Five records are committed, and 3 knows it of three of them. Its last two are of `epoch`."""
    history = quiet().appended(1, 0, 5).copied(0, 5, 2)
    runs = (EpochRun(0, 0), EpochRun(epoch, 1))
    history.tell(e.RecordsAppended, 3, ORDERS, "follower", 0, 5, 0, 100, runs)
    return history.hw(1, 5).hw(3, 3).tell(e.LogTruncated, 3, ORDERS, 5, offset)


def follower_with(epoch: int) -> History:
    """A follower has offsets up to 5 committed; its last record is of `epoch`."""
    history = quiet().appended(1, 0, 5).copied(0, 5, 3)
    runs = (EpochRun(0, 0), EpochRun(epoch, 4))
    history.tell(e.RecordsAppended, 2, ORDERS, "follower", 0, 5, 0, 100, runs)
    return history.hw(1, 5).hw(2, 5)


def one_more_controller(epoch: int) -> History:
    return quiet().tell(e.ControllerElected, 2, epoch, epoch)


def one_more_state(*, cached: bool, shown: bool, notified: bool) -> History:
    """An ISR that shrank and grew: who knows of it."""
    history = quiet().wrote(1, 1, 0, 1, 3).wrote(1, 1, 0, 1, 3, 2)
    history.tell(e.IsrUpdated, 1, ORDERS, "expand", (1, 3, 2), 2, 0)
    node = "/isr_change_notification/isr_change_0000000000"
    history.logged(1, "create", node, "{}")
    if not notified:
        history.fenced(3, LoggedOp("delete", node))
    if cached:
        history.tell(e.ControllerCacheUpdated, 3, ORDERS, 1, 0, (1, 3, 2), 2, "notification")
    return history.shown(2, 0, 1, 3, 2, at=REPLICAS if shown else (1, 2))


def taken_over(*isr: int) -> History:
    """ZooKeeper has [1, 2] at v1; the leader takes it for this ISR."""
    history = quiet().wrote(1, 1, 0, 1, 2)
    return history.tell(e.IsrUpdated, 1, ORDERS, "shrink", isr, 1, 0)


def notified(*, read: bool) -> History:
    """A notification of orders-0 comes and goes, after the controller has worked on others."""
    node = "/isr_change_notification/isr_change_0000000000"
    data = '{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
    history = quiet().tell(e.ControllerEventProcessed, 3, "TopicChange", 0, 0)
    history.wrote(1, 1, 0, 1, 2).logged(1, "create", node, data)
    if read:
        history.tell(e.ControllerCacheUpdated, 3, ORDERS, 1, 0, (1, 2), 1, "notification")
    return history.fenced(3, LoggedOp("delete", node))


def led_by(epoch: int) -> History:
    """Five records are committed; 2, which has the last of them from `epoch`, leads and shows
    them."""
    history = quiet().appended(1, 0, 5).copied(0, 5, 3)
    runs = (EpochRun(0, 0), EpochRun(epoch, 4))
    history.tell(e.RecordsAppended, 2, ORDERS, "follower", 0, 5, 0, 100, runs).hw(1, 5)
    history.wrote(3, 2, 1, 2, 3, by="controller").told(2, 1, 2, 3)
    return history.hw(2, 5)


def worked_on(*, all_of_it: bool) -> History:
    """Two events wait for the controller; a third one clears the queue."""
    history = converged()
    for behind in (0, 1, 0):
        history.tell(e.ControllerEventQueued, 3, f"Event{behind}", behind)
    return history.tell(e.ControllerEventProcessed, 3 if all_of_it else 2, "Event0", 0, 0)


def converged(**without: bool) -> History:
    return one_more_state(**{"cached": True, "shown": True, "notified": False, **without})


CASES = [
    *OF_HAZARDS,
    Case("leader in isr", lambda: quiet().wrote(1, 1, 0, 1), lambda: quiet().wrote(1, 1, 0, 2, 3)),
    Case(
        "isr within assignment",
        lambda: quiet().assigned(1, 2, 3, 4).wrote(1, 1, 0, 1, 4),
        lambda: quiet().wrote(1, 1, 0, 1, 4),
    ),
    Case("epochs never decrease", lambda: obeyed(1), lambda: obeyed(0)),
    Case("hw never decreases", lambda: with_records().hw(1, 5), lambda: with_records().hw(1, 4)),
    Case(
        "hw within isr",
        lambda: quiet().appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5),
        lambda: quiet().appended(1, 0, 5).copied(0, 5, 2).copied(0, 4, 3).hw(1, 5),
    ),
    Case("committed records survive", lambda: joining(10), lambda: joining(9)),
    Case("truncations spare the committed", lambda: cut_to(3), lambda: cut_to(2)),
    Case(
        "acknowledged is committed",
        lambda: with_records().produced(0, 5),
        lambda: with_records().produced(0, 6),
    ),
    Case(
        "one leader per epoch",
        lambda: reelected(leader=2).appended(2, 5, 6, epoch=1),
        lambda: reelected(leader=2).tell(e.RecordsAppended, 1, ORDERS, "leader", 5, 6, 1, 100),
    ),
    Case(
        "metadata never moves back",
        lambda: quiet().shown(1, 0, 1, 3).shown(1, 0, 1, 3),
        lambda: quiet().shown(1, 0, 1, 3).shown(0, 0, 1, 2, 3),
    ),
    Case(
        "state has one writer",
        lambda: quiet().wrote(3, 2, 1, 2, 3, by="controller"),
        lambda: quiet().wrote(1, 2, 1, 2, 3, by="controller"),
    ),
    Case(
        "one controller per epoch",
        lambda: one_more_controller(2),
        lambda: one_more_controller(1),
    ),
    Case("isr updates are written", lambda: taken_over(1, 2), lambda: taken_over(1, 3)),
    Case(
        "notifications are read",
        lambda: notified(read=True),
        lambda: notified(read=False),
    ),
    Case("logs agree", lambda: follower_with(0), lambda: follower_with(1)),
    Case(
        "brokers are registered",
        converged,
        lambda: converged().tell(
            e.ZkTransaction,
            0,
            1,
            "closeSession",
            None,
            None,
            None,
            False,
            (),
            None,
            None,
            ("/brokers/ids/2",),
        ),
    ),
    Case(
        "a controller is there",
        converged,
        lambda: converged().tell(e.ControllerResigned, 3, 1),
    ),
    Case("reads are consistent", lambda: led_by(0), lambda: led_by(1)),
    Case(
        "controllers keep up",
        lambda: worked_on(all_of_it=True),
        lambda: worked_on(all_of_it=False),
    ),
    Case("controller knows states", converged, lambda: converged(cached=False)),
    Case("metadata converges", converged, lambda: converged(shown=False)),
    Case("nothing is left to do", converged, lambda: converged(notified=True)),
    Case(
        "replicas return to isr",
        converged,
        lambda: converged().wrote(1, 1, 0, 1, 3),
    ),
]


def test_every_invariant_has_its_traces() -> None:
    assert {case.invariant for case in CASES} == set(invariants())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.invariant)
def test_a_trace_that_keeps_it(case: Case) -> None:
    assert case.invariant not in broken(case.keeps())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.invariant)
def test_a_trace_that_breaks_it(case: Case) -> None:
    assert case.invariant in broken(case.breaks())


def test_a_replica_may_remove_what_others_have_committed_in_another_epoch() -> None:
    assert "truncations spare the committed" not in broken(cut_to(1, epoch=1))


def test_what_the_leader_lacks_too_is_lost_already() -> None:
    spare = "truncations spare the committed"
    history = with_records().hw(3, 5).tell(e.LogTruncated, 1, ORDERS, 5, 2)
    assert spare not in broken(history.tell(e.LogTruncated, 3, ORDERS, 5, 2))


def test_who_fetches_from_the_next_leader_does_not_fetch_from_the_last() -> None:
    """Found by isr fuzz, seed 0x7075: the last one does not know yet that it was deposed."""
    expelled = "caught up members stay"
    assert expelled in broken(expelled_after_a_fetch_from(1))
    assert expelled not in broken(expelled_after_a_fetch_from(3))


def test_it_is_a_sentence() -> None:
    for name, kind in invariants().items():
        assert kind.__doc__, name
        assert kind.__doc__.rstrip().endswith("."), name


def test_an_undisturbed_cluster_breaks_nothing() -> None:
    assert broken(converged()) == set()


# -- what a violation says -------------------------------------------------------------------------


def test_a_violation_names_the_two_facts_and_is_said_once() -> None:
    history = with_records()
    history.hw(1, 4).hw(1, 3)
    (found,) = (v for v in violations(history) if v.invariant == "hw never decreases")
    before, after = found.facts
    assert [history.events[seq].hw for seq in (before, after)] == [5, 4]  # type: ignore[union-attr]
    assert found.partition == ORDERS
    assert "from 5 to 4" in found.text


def test_the_chain_leads_from_the_first_cause_to_the_fact() -> None:
    history = quiet()
    last = history.events[-1].seq
    chain = chain_of(history.events, last)
    assert chain[-1].seq == last
    assert all(one.seq == two.cause for one, two in pairwise(chain))


def test_a_stored_trace_is_checked_like_one_that_grows() -> None:
    history = with_records().hw(1, 4)
    assert [v.invariant for v in check(history.events)] == ["hw never decreases"]


# -- what is allowed ------------------------------------------------------------------------------


def test_an_unclean_election_may_give_up_what_was_committed() -> None:
    history = quiet().appended(1, 0, 5).copied(0, 5, 2).wrote(1, 1, 0, 1, 2)
    history.tell(e.IsrUpdated, 1, ORDERS, "shrink", (1, 2), 1, 0)
    history.hw(1, 5).wrote(3, 3, 1, 3, by="controller").told(3, 1, 3)
    assert "committed records survive" not in broken(history)


def joins_with_untraced_records(*runs: EpochRun) -> History:
    """3 is killed after it has written offsets 5 to 9, and before it has traced that. It starts
    with these in its files, and joins the ISR."""
    history = with_records().wrote(1, 1, 0, 1, 2)
    history.tell(e.IsrUpdated, 1, ORDERS, "shrink", (1, 2), 1, 0)
    history.appended(1, 5, 10).copied(5, 10, 2).hw(1, 10)
    if runs:
        history.tell(e.LogLoaded, 3, ORDERS, 0, 10, runs)
    history.tell(e.BecomesFollower, 3, ORDERS, 1, 0, 10, 5)
    return history.appended(1, 10, 11).copied(10, 11, 3).wrote(1, 1, 0, 1, 2, 3)


def test_a_broker_that_starts_before_the_first_record_loads_an_empty_log() -> None:
    history = quiet()
    history.tell(e.LogLoaded, 3, ORDERS, 0, 0, ())
    assert not broken(history.appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5))


def test_the_files_of_a_killed_broker_have_what_its_trace_lacks() -> None:
    survive = "committed records survive"
    assert survive in broken(joins_with_untraced_records())
    assert survive not in broken(joins_with_untraced_records(EpochRun(0, 0)))
    assert survive in broken(joins_with_untraced_records(EpochRun(0, 0), EpochRun(1, 7)))


def test_a_clean_election_may_not() -> None:
    history = quiet().appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5)
    history.tell(e.LogTruncated, 2, ORDERS, 5, 3)
    history.wrote(3, 2, 1, 2, 3, by="controller").told(2, 1, 2, 3)
    assert "committed records survive" in broken(history)


def test_a_topic_that_was_deleted_begins_again() -> None:
    history = with_records()
    history.fenced(3, LoggedOp("delete", STATE))
    for broker in REPLICAS:
        history.tell(e.StopReplica, broker, 3, 1, ORDERS, -2, True)
        history.tell(e.LogTruncated, broker, ORDERS, 5, 0)
    history.fenced(3, LoggedOp("create", STATE, payload(2, 0, (2, 1, 3))))
    history.told(2, 0, 2, 1, 3, version=0)
    assert broken(history) <= {"metadata converges", "controller knows states"}


def test_a_broker_that_starts_anew_may_obey_an_epoch_again() -> None:
    history = quiet().tell(e.BrokerStarting, 2, "2.6")
    state = PartitionState(ORDERS, 1, 1, 0, REPLICAS, 0, REPLICAS)
    history.tell(e.LeaderAndIsr, 2, 3, 1, state)
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 0, 0, 0)
    assert "epochs never decrease" not in broken(history)


def test_what_waits_for_a_controller_is_counted_down() -> None:
    history = converged()
    for behind in (0, 1, 2):
        history.tell(e.ControllerEventQueued, 3, f"Event{behind}", behind)
    for left in (True, True, False):
        history.tell(e.ControllerEventProcessed, 3, "Event", 0, 0)
        assert ("controllers keep up" in broken(history)) is left


def test_a_process_that_begins_has_an_empty_queue() -> None:
    history = worked_on(all_of_it=False).started(3)
    assert "controllers keep up" not in broken(history)


def test_who_was_deposed_by_an_unclean_election_may_show_what_it_likes() -> None:
    """3 leads by an unclean election with a record of its own; 1 does not know it yet."""
    history = with_records().wrote(1, 1, 0, 1, 2).wrote(3, 3, 1, 3, by="controller")
    state = PartitionState(ORDERS, 1, 3, 1, (3,), 2, REPLICAS)
    history.tell(e.LeaderAndIsr, 3, 3, 1, state).tell(e.LogTruncated, 3, ORDERS, 5, 4)
    history.tell(e.BecomesLeader, 3, ORDERS, 1, 4, 4)
    history.tell(e.RecordsAppended, 3, ORDERS, "leader", 4, 5, 1, 100)
    history.tell(e.HwAdvanced, 3, ORDERS, "leader", 5, 5)
    history.tell(e.HwAdvanced, 1, ORDERS, "leader", 5, 5)
    assert "reads are consistent" not in broken(history)


@pytest.mark.parametrize(("epoch", "breaks"), [("2", False), ("1", False), ("0", True)])
def test_the_controller_epoch_in_zookeeper_never_goes_down(epoch: str, breaks: bool) -> None:
    history = quiet().logged(2, "setData", "/controller_epoch", epoch)
    assert ("epochs never decrease" in broken(history)) is breaks


def from_log_of(broker: int, history: History) -> History:
    """The same, had this broker been real Kafka: a log has no thread, and tells of no append."""
    history.events = [
        msgspec.structs.replace(event, thread="") if event.broker == broker else event
        for event in history.events
        if event.broker != broker or not isinstance(event, e.RecordsAppended)
    ]
    return history


@pytest.mark.parametrize("real", [1, 3])
def test_what_real_kafka_appends_beside_emulated_brokers_is_unknown(real: int) -> None:
    """Neither as a follower nor as a leader is it believed to have nothing."""

    def leads_five() -> History:
        return quiet().appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5).produced(0, 5)

    assert broken(from_log_of(real, leads_five())) == broken(leads_five())
    lacks = quiet().appended(1, 0, 5).copied(0, 4, 2).copied(0, 5, 3).hw(1, 5)
    assert "hw within isr" in broken(from_log_of(3, lacks))  # by the emulated one
    assert "committed records survive" not in broken(from_log_of(3, joining(9)))
