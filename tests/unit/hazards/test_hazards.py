"""Hazards are recognised where their pattern is, and nowhere else."""

from __future__ import annotations

import msgspec
import pytest

from emulator.invariants.a_controller_is_there import NoController
from emulator.invariants.base import invariants
from emulator.invariants.brokers_are_registered import UnknownBrokers
from emulator.invariants.controller_knows_states import ControllerDiffers
from emulator.invariants.followers_fetch import DoesNotFetch
from emulator.invariants.known.base import hazards, recognise
from emulator.invariants.metadata_converges import ShowsAnother, ShowsDeleted
from emulator.invariants.metadata_never_moves_back import MovesBack
from emulator.invariants.nothing_is_left_to_do import StillCommanded, StillReassigned, StillThere
from emulator.invariants.replicas_return_to_isr import MissingReplicas, NoLeader
from emulator.invariants.truncations_spare_the_committed import CommittedRecordsTruncated
from emulator.trace import events as e
from emulator.trace.values import Parameters, PartitionState, TopicPartition
from tests.unit.invariants.history import ORDERS, REPLICAS, STATE, History, violations
from zk.errors import Code


def shrinking(*replicas: int) -> History:
    """The leader receives these replicas, with 3 in the ISR; then its high watermark passes 3."""
    history = History().started(1, 2, 3).elected().created()
    history.wrote(3, 1, 1, 1, 2, 3, by="controller")
    state = PartitionState(ORDERS, 1, 1, 1, (1, 2, 3), 1, replicas)
    history.tell(e.LeaderAndIsr, 1, 3, 1, state).tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    return history.appended(1, 0, 5, epoch=1).copied(0, 5, 2, epoch=1).hw(1, 5)


def names(history: History) -> set[str]:
    return {
        recognise(violation, history.events)
        for violation in violations(history)
        if violation.invariant == "hw within isr"
    }


def test_a_member_of_the_isr_that_is_no_replica_any_more() -> None:
    assert names(shrinking(1, 2)) == {"KAFKA-9672"}


def test_a_member_that_is_a_replica_is_our_fault() -> None:
    assert names(shrinking(1, 2, 3)) == {""}


def crippled(controller: int, *, again: bool = False) -> History:
    """A transition of this broker's controller finds its batch half full; `again`: then the broker
    starts anew."""
    history = History().started(1, 2, 3).elected()
    error = "IllegalState: the batch is not empty: StopReplica to [3] was not sent"
    history.tell(e.ThreadFailed, controller, "replicas to OfflineReplica", error)
    return history.tell(e.BrokerStarting, controller, "2.6") if again else history


LEFT = StillThere("/isr_change_notification/x", facts=(-1, 1))


def test_a_controller_whose_batch_was_left_half_full() -> None:
    history = crippled(elected_by(crippled(1)))
    assert recognise(LEFT, history.events) == "KAFKA-12315"


def test_a_broker_that_is_not_controller_cripples_nobody() -> None:
    other = next(b for b in (1, 2, 3) if b != elected_by(crippled(1)))
    assert recognise(LEFT, crippled(other).events) == ""


def test_a_new_process_begins_with_empty_batches() -> None:
    history = crippled(elected_by(crippled(1)), again=True)
    assert recognise(LEFT, history.events) == ""


def elected_by(history: History) -> int:
    return next(x.broker for x in history.events if isinstance(x, e.ControllerElected))


def test_a_command_for_a_partition_that_never_had_a_leader() -> None:
    history = History().started(1, 2, 3).elected()
    before = len(history.events)
    error = "IllegalState: nothing is known of the leader of orders-0"
    history.tell(e.ThreadFailed, 1, "ReplicaLeaderElection", error)
    command = "/admin/preferred_replica_election"
    stuck = StillThere(command, facts=(-1, before))
    assert recognise(stuck, history.events) == "stuck election command"
    written_later = StillThere(command, facts=(-1, before + 1))
    assert recognise(written_later, history.events) == ""
    assert recognise(LEFT, history.events) == ""


def test_a_fail_over_that_such_a_command_ends() -> None:
    history = History().started(1, 2, 3).elected()
    nobody = NoController(facts=(-1, 1))
    error = "IllegalState: nothing is known of the leader of orders-0"
    history.tell(e.ThreadFailed, 1, "election", error)
    assert recognise(nobody, history.events) == "stuck election command"
    assert recognise(nobody, history.elected(2).events) == ""


STALE = ShowsAnother(0, 1, facts=(-1, 1), partition=ORDERS, broker=2)


@pytest.mark.parametrize(
    ("version", "hazard"), [("0.8.2", "ISR change not announced"), ("0.9.0", "")]
)
def test_an_isr_change_that_nobody_is_told_of(version: str, hazard: str) -> None:
    history = History().started(1, 2, 3).elected().created()
    history.tell(e.BrokerStarting, 1, version)
    assert recognise(STALE, history.events) == "", "nothing was changed"
    history.tell(e.IsrUpdated, 1, ORDERS, "shrink", (1, 2), 1, 0)
    assert recognise(STALE, history.events) == hazard


def test_each_breaks_invariants_that_there_are() -> None:
    for hazard in hazards():
        assert set(hazard.breaks) <= set(invariants()), hazard.name
        assert hazard.about


# -- what a machine loses --------------------------------------------------------------------------


def back_without_records(
    lose: str, *, elected: int = 2, do: str = "crash", fault: str = ""
) -> History:
    """Five records are committed; 2's machine crashes; it comes back with three, and 1 makes way
    for `elected`."""
    parameters = Parameters(lose=lose, fault=fault)
    history = History().started(1, 2, 3).elected().created()
    history.appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5)
    history.tell(e.ActionApplied, 2, do, parameters).tell(e.BrokerStarting, 2, "2.6").started(2)
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 0, 3, 3)
    history.wrote(3, elected, 1, elected, 1, by="controller")
    state = PartitionState(ORDERS, 1, elected, 1, (elected, 1), 1, (1, 2, 3))
    history.tell(e.LeaderAndIsr, elected, 3, 1, state)
    return history.tell(e.BecomesLeader, elected, ORDERS, 1, 3, 3)


def lost(history: History) -> set[str]:
    return {
        recognise(violation, history.events)
        for violation in violations(history)
        if violation.invariant == "committed records survive"
    }


def test_a_member_that_lost_records_with_its_machine_leads() -> None:
    assert lost(back_without_records("unflushed")) == {"lossy restart"}
    assert lost(back_without_records("disk")) == {"lossy restart"}


def test_a_member_whose_log_was_damaged_leads() -> None:
    assert lost(back_without_records("", do="disk", fault="bit_flip")) == {"lossy restart"}
    for harmless in ("error", "full", "short_writes", "bad_sector"):
        assert lost(back_without_records("", do="disk", fault=harmless)) == {""}, harmless


def test_records_that_no_crash_took_are_our_fault() -> None:
    assert lost(back_without_records("nothing")) == {""}


def test_a_broker_that_lost_nothing_and_lacks_records_is_our_fault() -> None:
    assert lost(back_without_records("disk", elected=3)) == {""}


def test_who_has_fetched_again_what_it_lost_lacks_nothing_by_it() -> None:
    history = History().started(1, 2, 3).elected().created()
    history.appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5)
    history.tell(e.ActionApplied, 2, "crash", Parameters(lose="disk")).started(2)
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 0, 0, 0).copied(0, 5, 2)
    history.tell(e.LogTruncated, 2, ORDERS, 5, 4)
    history.wrote(3, 2, 1, 2, 1, by="controller")
    state = PartitionState(ORDERS, 1, 2, 1, (2, 1), 1, (1, 2, 3))
    history.tell(e.LeaderAndIsr, 2, 3, 1, state).tell(e.BecomesLeader, 2, ORDERS, 1, 4, 4)
    assert lost(history) == {""}


def test_who_joins_after_a_lossy_leader_lacks_what_that_one_lost() -> None:
    history = back_without_records("disk")
    history.wrote(3, 2, 2, 2, by="controller").wrote(2, 2, 2, 2, 1)
    history.tell(e.LogTruncated, 1, ORDERS, 5, 3).wrote(2, 2, 2, 2).wrote(2, 2, 2, 2, 1)
    assert lost(history) == {"lossy restart"}


# -- a deletion that a broker does not hear of -----------------------------------------------------

DELETION = "/admin/delete_topics/orders"


def deleted(*, gone: bool, restarted: bool = False, heard: bool = True) -> History:
    """The topic is deleted; 2 is not registered then (`gone`), and returns, as a new process
    (`restarted`) or not. `heard`: the controller knew of its registration."""
    history = History().started(1, 2, 3).elected().created().shown(0, 0, 1, 2, 3)
    if gone:
        history.logged(2, "delete", "/brokers/ids/2")
        history.tell(e.BrokerChange, 3, (), (2,), (), (1, 3))
    elif not heard:
        history.tell(e.BrokerChange, 3, (), (2,), (), (1, 3))
    history.logged(3, "create", DELETION).logged(3, "delete", STATE)
    history.logged(3, "delete", DELETION)
    if restarted:
        history.tell(e.BrokerStarting, 2, "2.6")
    history.logged(2, "create", "/brokers/ids/2")
    return history.tell(e.BrokerChange, 3, (2,), (), (), (1, 2, 3))


def shows(history: History) -> str:
    stale = ShowsDeleted(facts=(-1, 9), partition=ORDERS, broker=2)
    return recognise(stale, history.events)


def test_a_topic_that_was_deleted_while_a_broker_had_no_session() -> None:
    assert shows(deleted(gone=True)) == "missed deletion"
    assert shows(deleted(gone=False, heard=False)) == "missed deletion"


@pytest.mark.parametrize(("known", "hazard"), [((1, 3), "missed deletion"), ((1, 2, 3), "")])
def test_a_deletion_that_was_announced_before_a_broker_returned(
    known: tuple[int, ...], hazard: str
) -> None:
    """It is known again before the markers go."""
    history = History().started(1, 2, 3).elected().created().shown(0, 0, 1, 2, 3)
    history.logged(3, "create", DELETION).tell(e.BrokerChange, 3, (), (), (), known)
    to = "ReplicaDeletionStarted"
    history.tell(e.ReplicaStateChanged, 3, 1, ORDERS, 1, "OfflineReplica", to)
    history.tell(e.BrokerChange, 3, (2,), (), (), (1, 2, 3)).logged(3, "delete", STATE)
    assert shows(history.logged(3, "delete", DELETION)) == hazard


@pytest.mark.parametrize(("heard", "hazard"), [(False, "missed deletion"), (True, "")])
def test_a_broker_that_is_given_up_before_it_hears_of_a_deletion(heard: bool, hazard: str) -> None:
    """The announcement waited in its send thread."""
    history = History().started(1, 2, 3).elected().created().shown(0, 0, 1, 2, 3)
    history.tell(e.BrokerChange, 3, (), (), (), (1, 2, 3)).logged(3, "create", DELETION)
    to = "ReplicaDeletionStarted"
    history.tell(e.ReplicaStateChanged, 3, 1, ORDERS, 1, "OfflineReplica", to)
    if heard:
        history.tell(e.MetadataCacheUpdated, 2, 3, 1, (1, 2, 3), (), (ORDERS,))
    history.logged(3, "delete", STATE).logged(3, "delete", DELETION)
    assert shows(history.tell(e.BrokerChange, 3, (), (2,), (), (1, 3))) == hazard


def test_who_was_registered_must_be_told() -> None:
    assert shows(deleted(gone=False)) == ""


def test_a_new_process_shows_nothing_old() -> None:
    assert shows(deleted(gone=True, restarted=True)) == ""


def test_another_state_than_zookeepers_is_no_missed_deletion() -> None:
    stale = ShowsAnother(1, 2, facts=(-1, 9), partition=ORDERS, broker=2)
    assert recognise(stale, deleted(gone=True).events) == ""


# -- metadata that goes back and hides a leader ----------------------------------------------------


def with_metadata(*live: tuple[int, ...], arrive: tuple[int, ...]) -> History:
    """The controller sends 2 an UpdateMetadata with each list of live brokers; they arrive in
    this order. Then 2 receives a LeaderAndIsr: it follows 1."""
    history = History().started(1, 2, 3).elected().created()
    first = len(history.events)
    for _ in live:
        history.tell(e.ControlRequestSent, 3, 2, "UpdateMetadata", (ORDERS,), 1)
    for one in arrive:
        history.tell(e.MetadataCacheUpdated, 2, 3, 1, live[one], ())
        history.events[-1] = msgspec.structs.replace(history.events[-1], cause=first + one)
    state = PartitionState(ORDERS, 1, 1, 1, (1, 3), 1, REPLICAS)
    return history.tell(e.LeaderAndIsr, 2, 3, 1, state)


def test_a_leader_that_a_late_update_metadata_hides() -> None:
    history = with_metadata((2, 3), (1, 2, 3), arrive=(1, 0))
    assert recognise(STAYS_OUT, history.events) == "late UpdateMetadata"
    ignored = history.events[-1]
    assert isinstance(ignored, e.LeaderAndIsr)
    history.tell(e.LeaderAndIsrIgnored, 2, 3, 1, ignored.state, "STALE_CONTROLLER_EPOCH")
    assert recognise(STAYS_OUT, history.events) == "", "it was not to follow"


def test_a_leader_that_no_late_update_metadata_hides() -> None:
    in_order = with_metadata((2, 3), (1, 2, 3), arrive=(0, 1))
    assert recognise(STAYS_OUT, in_order.events) == "", "it is listed"
    never = with_metadata((2, 3), (2, 3), arrive=(1, 0))
    assert recognise(STAYS_OUT, never.events) == "", "it was not listed before"
    single = with_metadata((2, 3), arrive=(0,))
    assert recognise(STAYS_OUT, single.events) == "", "nothing came too late"
    follows = with_metadata((2, 3), (1, 2, 3), arrive=(1, 0))
    follows.tell(e.BecomesFollower, 2, ORDERS, 1, 1, 0, 0)
    assert recognise(STAYS_OUT, follows.events) == ""


def held_by_a_cut(*, overtaken: bool = True, do: str = "heal_link", arrived: bool = False) -> str:
    """The controller sends 2 metadata of v0, which a cut link holds until `do`; and v1 in another
    connection, before that or (not `overtaken`) in a thread to another broker. `arrived`: the first
    request came in time, so it is not the one that was held."""
    history = History().started(1, 2, 3).elected().created()
    v0, v1 = (PartitionState(ORDERS, 1, 1, n, REPLICAS, n, REPLICAS) for n in (0, 1))
    first = len(history.events)
    history.tell(e.ControlRequestSent, 3, 2, "UpdateMetadata", (ORDERS,), 1)
    if arrived:
        history.tell(e.MetadataCacheUpdated, 2, 3, 1, REPLICAS, (v0,))
        assert history.events[-1].cause == first
    history.tell(e.ActionApplied, 2, do, Parameters(peer=3))
    healed = len(history.events) - 1
    history.tell(e.ControlRequestSent, 3, 2, "UpdateMetadata", (ORDERS,), 1)
    if not overtaken:
        history.events[-1] = msgspec.structs.replace(history.events[-1], thread="another")
    history.tell(e.MetadataCacheUpdated, 2, 3, 1, REPLICAS, (v1,))
    history.tell(e.MetadataCacheUpdated, 2, 3, 1, REPLICAS, (v0,))
    history.events[-1] = msgspec.structs.replace(history.events[-1], cause=healed)
    (back,) = (one for one in violations(history) if isinstance(one, MovesBack))
    return recognise(back, history.events)


def test_metadata_that_a_cut_link_held_until_newer_came() -> None:
    assert held_by_a_cut() == "late UpdateMetadata"
    assert held_by_a_cut(do="plug_in") == "late UpdateMetadata"


def test_metadata_that_no_cut_link_held_is_our_fault() -> None:
    assert held_by_a_cut(overtaken=False) == "", "it was not the same thread that went on"
    assert held_by_a_cut(do="resume") == "", "this releases no message"
    assert held_by_a_cut(arrived=True) == "", "no request is missing"


# -- an expand whose answer is lost ----------------------------------------------------------------


def expanded(*, answered: bool, applied: bool = True) -> History:
    """2 was out of the ISR; 1 adds it again and continues with five more records, which only 3 has;
    then 2 (or 3, if 2 is not in the ISR) is elected, and has others at these offsets."""
    elected = 2 if applied else 3
    history = History().started(1, 2, 3).elected().created().appended(1, 0, 5).copied(0, 5, 2, 3)
    history.wrote(1, 1, 0, 1, 3).tell(e.IsrUpdated, 1, ORDERS, "shrink", (1, 3), 1, 0).hw(1, 5)
    expand = (ORDERS, "expand", (1, 3), (1, 3, 2), 5, 5, 0, 1)
    history.tell(e.IsrUpdateStarted, 1, *expand)
    if applied:
        history.wrote(1, 1, 0, 1, 3, 2)
    else:
        history.logged(1, "create", "/isr_change_notification/isr_change_0000000000", "{}")
    if answered:
        history.tell(e.IsrUpdated, 1, ORDERS, "expand", (1, 3, 2), 2, 0)
    history.appended(1, 5, 10).copied(5, 10, 3).hw(1, 10)
    history.wrote(3, elected, 1, elected, by="controller")
    state = PartitionState(ORDERS, 1, elected, 1, (elected,), 3, (1, 2, 3))
    history.tell(e.LeaderAndIsr, elected, 3, 1, state)
    history.tell(e.BecomesLeader, elected, ORDERS, 1, 5, 5)
    history.tell(e.RecordsAppended, elected, ORDERS, "leader", 5, 10, 1, 100)
    return history.tell(e.HwAdvanced, elected, ORDERS, "leader", 10, 10)


def of_reads(history: History) -> set[str]:
    return {
        recognise(violation, history.events)
        for violation in violations(history)
        if violation.invariant == "reads are consistent"
    }


def test_a_leader_that_does_not_know_of_its_own_expand() -> None:
    assert of_reads(expanded(answered=False)) == {"lost expand"}


def test_a_leader_that_knows_has_to_wait() -> None:
    assert of_reads(expanded(answered=True)) == {""}


def test_an_expand_that_was_never_written_is_no_excuse() -> None:
    assert of_reads(expanded(answered=False, applied=False)) == {""}


# -- AlterIsr --------------------------------------------------------------------------------------

STAYS_OUT = MissingReplicas((2,), (1, 3), facts=(-1, 1), partition=ORDERS)


def proposing(version: str) -> History:
    """Leader 1 runs this version and has proposed [1, 3]."""
    history = History()
    history.started(1, 2, 3).elected().created()
    history.tell(e.BrokerStarting, 1, version).tell(e.BrokerStarting, 3, version)
    return history.tell(e.AlterIsrProposed, 1, ORDERS, (1, 3), 0, 0, "PendingShrinkIsr")


@pytest.mark.parametrize(("version", "hazard"), [("2.7", "KAFKA-12686"), ("3.3", "")])
def test_a_response_that_removes_the_next_proposal(version: str, hazard: str) -> None:
    history = proposing(version)
    history.tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    history.tell(e.AlterIsrProposed, 1, ORDERS, (1, 2, 3), 1, 1, "PendingExpandIsr")
    assert recognise(STAYS_OUT, history.events) == ""
    history.tell(e.AlterIsrFailed, 1, ORDERS, "shrink", "FENCED_LEADER_EPOCH", "ignored", 1)
    assert recognise(STAYS_OUT, history.events) == hazard
    history.tell(e.BecomesLeader, 1, ORDERS, 2, 0, 0)
    assert recognise(STAYS_OUT, history.events) == "", "a LeaderAndIsr has ended it"


def test_a_late_response_without_another_proposal_removes_nothing() -> None:
    history = proposing("2.7").tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    history.tell(e.AlterIsrFailed, 1, ORDERS, "shrink", "FENCED_LEADER_EPOCH", "ignored", 1)
    assert recognise(STAYS_OUT, history.events) == ""


@pytest.mark.parametrize(("version", "hazard"), [("2.8", "KAFKA-14010"), ("3.3", "")])
def test_a_repeated_proposal_that_is_refused_as_a_duplicate(version: str, hazard: str) -> None:
    history, error = proposing(version), "UNKNOWN_SERVER_ERROR"
    history.tell(e.AlterIsrFailed, 1, ORDERS, "shrink", error, "resubmitted", 0)
    assert recognise(STAYS_OUT, history.events) == ""
    error = "OPERATION_NOT_ATTEMPTED"
    history.tell(e.AlterIsrFailed, 1, ORDERS, "shrink", error, "stays pending", 0)
    assert recognise(STAYS_OUT, history.events) == hazard
    history.tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    assert recognise(STAYS_OUT, history.events) == ""


@pytest.mark.parametrize(("version", "hazard"), [("2.8", "KAFKA-14010"), ("3.3", "")])
def test_a_proposal_that_waits_for_such_a_response(version: str, hazard: str) -> None:
    other = TopicPartition("other", 0)
    history = proposing(version)
    history.tell(e.AlterIsrFailed, 1, other, "expand", "UNKNOWN_SERVER_ERROR", "resubmitted", 0)
    error = "OPERATION_NOT_ATTEMPTED"
    history.tell(e.AlterIsrFailed, 1, other, "expand", error, "stays pending", 0)
    assert recognise(STAYS_OUT, history.events) == hazard
    history.tell(e.AlterIsrSent, 1, 3, (ORDERS,), 1, 1)
    assert recognise(STAYS_OUT, history.events) == "", "the next proposal takes it along"


def test_a_proposal_that_was_sent_does_not_wait_for_such_a_response() -> None:
    other, error = TopicPartition("other", 0), "OPERATION_NOT_ATTEMPTED"
    history = proposing("2.8").tell(e.AlterIsrSent, 1, 3, (ORDERS, other), 1, 1)
    history.tell(e.AlterIsrFailed, 1, other, "expand", "UNKNOWN_SERVER_ERROR", "resubmitted", 0)
    history.tell(e.AlterIsrFailed, 1, other, "expand", error, "stays pending", 0)
    assert recognise(STAYS_OUT, history.events) == ""


def refused(history: History) -> History:
    error = "INVALID_UPDATE_VERSION"
    return history.tell(e.AlterIsrDecided, 3, ORDERS, 1, (1, 3), error, -1, (), -1)


def test_a_controller_that_refuses_what_it_has_written() -> None:
    history = refused(proposing("3.3").wrote(3, 1, 0, 1, 3, by="controller"))
    unknown = ControllerDiffers(0, 1, facts=(-1, 1), partition=ORDERS, broker=3)
    assert recognise(STAYS_OUT, history.events) == "own AlterIsr write"
    assert recognise(unknown, history.events) == "own AlterIsr write"
    history.tell(e.ControllerCacheUpdated, 3, ORDERS, 1, 0, (1, 3), 1, "fail-over")
    assert recognise(STAYS_OUT, history.events) == "own AlterIsr write", "the leader does not know"
    assert recognise(unknown, history.events) == ""
    history.tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    assert recognise(STAYS_OUT, history.events) == ""


def test_a_reassignment_waits_for_an_isr_that_the_controller_refused() -> None:
    history = refused(proposing("3.3").wrote(3, 1, 0, 1, 3, by="controller"))
    pending = StillReassigned(TOPIC, facts=(-1, 1), partition=ORDERS)
    assert recognise(pending, history.events) == "own AlterIsr write"
    history.tell(e.ControllerCacheUpdated, 3, ORDERS, 1, 0, (1, 3), 1, "fail-over")
    assert recognise(pending, history.events) == ""


def test_a_controller_that_refuses_what_another_has_written_over() -> None:
    assert recognise(STAYS_OUT, refused(proposing("3.3")).events) == "", "nothing was written"
    another = refused(proposing("3.3").wrote(3, 1, 0, 1, by="controller"))
    assert recognise(STAYS_OUT, another.events) == ""
    known = proposing("3.3").wrote(3, 1, 0, 1, 3, by="controller")
    known.tell(e.ControllerCacheUpdated, 3, ORDERS, 1, 0, (1, 3), 1, "AlterIsr")
    assert recognise(STAYS_OUT, refused(known).events) == ""


# -- a broker that was away ------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "hazard"), [("2.1", "KAFKA-1120"), ("2.4", "")])
def test_a_bounce_that_the_controller_does_not_see(version: str, hazard: str) -> None:
    history = History().tell(e.BrokerStarting, 3, version).elected().created()
    history.logged(2, "delete", "/brokers/ids/2").tell(e.BrokerStarting, 2, version)
    history.logged(2, "create", "/brokers/ids/2")
    assert recognise(STAYS_OUT, history.events) == "", "it has not looked yet"
    history.tell(e.BrokerChange, 3, (), (), (), REPLICAS)
    assert recognise(STAYS_OUT, history.events) == hazard
    knows_nobody = UnknownBrokers((), REPLICAS, facts=(-1, 1), broker=2)
    assert recognise(knows_nobody, history.events) == hazard
    assert recognise(STAYS_OUT, history.elected(1).events) == "", "a new controller tells all"


@pytest.mark.parametrize(("bounced", "hazard"), [(1, "KAFKA-1120"), (3, "")])
def test_a_leader_whose_bounce_the_controller_does_not_see(bounced: int, hazard: str) -> None:
    """It does not know that it leads: its follower's fetches are refused."""
    history = History().tell(e.BrokerStarting, 3, "2.1").elected().created()
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 0, 5, 5)
    registration = f"/brokers/ids/{bounced}"
    history.logged(bounced, "delete", registration).tell(e.BrokerStarting, bounced, "2.1")
    history.logged(bounced, "create", registration).tell(e.BrokerChange, 3, (), (), (), REPLICAS)
    assert recognise(STAYS_OUT, history.events) == hazard
    waits = DoesNotFetch(1, facts=(-1, 1), broker=2, partition=ORDERS)
    assert recognise(waits, history.events) == hazard
    assert recognise(waits, history.elected(1).events) == "", "a new controller tells all"


def test_a_bounce_that_the_controller_sees() -> None:
    history = History().tell(e.BrokerStarting, 3, "2.1").elected().created()
    history.logged(2, "create", "/brokers/ids/2").tell(e.BrokerChange, 3, (2,), (), (), REPLICAS)
    history.tell(e.BrokerChange, 3, (), (), (), REPLICAS)
    assert recognise(STAYS_OUT, history.events) == ""


# -- a follower that cannot append what a lossy leader has -----------------------------------------


def leading_on(lose: str) -> History:
    """1's machine crashes; it leads on in the same epoch, with three of its five records."""
    history = History().started(1, 2, 3).elected().created().appended(1, 0, 5).copied(0, 5, 2, 3)
    history.hw(1, 5).tell(e.ActionApplied, 1, "crash", Parameters(lose=lose)).started(1)
    return history.tell(e.BecomesLeader, 1, ORDERS, 0, 3, 3)


UNEXPECTED = "UnexpectedAppendOffset: the first offset 3 is less than the next offset 5"


def test_a_partition_that_failed_at_a_lossy_leaders_batch() -> None:
    history = leading_on("unflushed")
    assert recognise(STAYS_OUT, history.events) == "", "2 only has not joined yet"
    history.tell(e.PartitionMarkedFailed, 2, ORDERS, 1, UNEXPECTED)
    assert recognise(STAYS_OUT, history.events) == "lossy restart"
    both = MissingReplicas((2, 3), (1,), facts=(-1, 1), partition=ORDERS)
    assert recognise(both, history.events) == "", "3 fetches"
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 1, 5, 3)
    assert recognise(STAYS_OUT, history.events) == "", "2 fetches again"


@pytest.mark.parametrize(("copies", "name"), [(True, "lossy restart"), (False, "")])
def test_a_partition_that_failed_at_a_copy_of_a_lossy_leaders_batch(
    copies: bool, name: str
) -> None:
    """3 copies the batch that 1 wrote in place of the lost records, and leads in the next epoch."""
    history = leading_on("unflushed")
    history.tell(e.BecomesFollower, 3, ORDERS, 1, 0, 3, 3).appended(1, 3, 7)
    if copies:
        history.copied(3, 7, 3)
    history.tell(e.BecomesLeader, 3, ORDERS, 1, 7, 7)
    history.tell(e.BecomesFollower, 2, ORDERS, 3, 1, 5, 5)
    history.tell(e.PartitionMarkedFailed, 2, ORDERS, 3, UNEXPECTED)
    assert recognise(STAYS_OUT, history.events) == name


def test_a_truncation_to_the_end_of_a_lossy_leader() -> None:
    """The leader's next records have the epoch and the offsets of those that it lost."""
    for lose, hazard in (("disk", "lossy restart"), ("nothing", "")):
        history = leading_on(lose)
        cut = CommittedRecordsTruncated(
            2, 1, 5, 3, facts=(-1, len(history.events) - 1), partition=ORDERS, broker=2
        )
        assert recognise(cut, history.events) == hazard
        other = msgspec.structs.replace(cut, leader=3)
        assert recognise(other, history.events) == ""
        late = history.tell(e.LogTruncated, 2, ORDERS, 5, 3).events
        late[-1] = msgspec.structs.replace(late[-1], thread="ReplicaFetcherThread-0-1")
        by_its_thread = msgspec.structs.replace(other, facts=(-1, len(late) - 1))
        assert recognise(by_its_thread, late) == hazard, "2 has another leader, and fetches on"


def test_a_fetcher_that_ended_at_a_lossy_leaders_batch() -> None:
    history = leading_on("disk")
    died = e.ThreadFailed(
        len(history.events), 99_000, 2, "ReplicaFetcherThread-0-1", -1, "ReplicaFetcherThread",
        UNEXPECTED,
    )  # fmt: skip
    history.events.append(died)
    assert recognise(STAYS_OUT, history.events) == "lossy restart"


@pytest.mark.parametrize(("truncates", "name"), [(True, "lossy restart"), (False, "")])
def test_a_fetcher_that_ended_at_a_copy_of_a_lossy_leaders_batch(
    truncates: bool, name: str
) -> None:
    history = leading_on("disk").tell(e.BecomesFollower, 3, ORDERS, 1, 0, 5, 5)
    if truncates:
        history.tell(e.LogTruncated, 3, ORDERS, 5, 3)
    history.wrote(3, 3, 1, 3, by="controller").tell(e.BecomesLeader, 3, ORDERS, 1, 7, 7)
    died = e.ThreadFailed(
        len(history.events), 99_000, 2, "ReplicaFetcherThread-0-3", -1, "ReplicaFetcherThread",
        UNEXPECTED,
    )  # fmt: skip
    history.events.append(died)
    history.tell(e.BecomesFollower, 2, ORDERS, 3, 1, 5, 3)
    assert recognise(
        DoesNotFetch(3, facts=(-1, 1), partition=ORDERS, broker=2), history.events
    ) == (name)


def test_a_fetcher_that_ended_at_another_partition_of_a_lossy_leader() -> None:
    history = History().started(1, 2, 3).elected().created()
    history.tell(e.ActionApplied, 1, "crash", Parameters(lose="disk")).started(1)
    history.tell(e.BecomesLeader, 1, ORDERS, 0, 0, 0)
    died = e.ThreadFailed(
        len(history.events), 99_000, 2, "ReplicaFetcherThread-0-1", -1, "ReplicaFetcherThread",
        UNEXPECTED,
    )  # fmt: skip
    elsewhere = msgspec.structs.replace(died, thread="ReplicaFetcherThread-0-3")
    assert recognise(STAYS_OUT, [*history.events, elsewhere]) == ""
    assert recognise(STAYS_OUT, [*history.events, died]) == "lossy restart"


def test_who_follows_in_a_thread_that_has_ended_never_fetches() -> None:
    history = leading_on("disk")
    died = e.ThreadFailed(
        len(history.events), 99_000, 2, "ReplicaFetcherThread-0-1", -1, "ReplicaFetcherThread",
        UNEXPECTED,
    )  # fmt: skip
    history.events.append(died)
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 1, 5, 3)
    idle = DoesNotFetch(1, facts=(-1, 1), partition=ORDERS, broker=2)
    assert recognise(idle, history.events) == recognise(STAYS_OUT, history.events)
    assert recognise(idle, history.events) == "lossy restart"
    history.tell(e.BrokerStarting, 2, "2.1")
    assert recognise(idle, history.events) == "", "a new process has new threads"


def test_an_isr_whose_members_have_all_halted_has_no_leader() -> None:
    nobody = NoLeader(facts=(-1, 1), partition=ORDERS)
    history = History().started(1, 2, 3).elected().created().wrote(3, -1, 1, 2, by="controller")
    history.tell(e.BrokerStarting, 2, "1.0")
    assert recognise(nobody, history.events) == ""
    history.tell(e.BrokerHalted, 2, "orders-0: truncation to the leader's 0 is not allowed")
    assert recognise(nobody, history.events) == "KAFKA-7414"
    assert recognise(nobody, history.wrote(3, -1, 2, 2, 3, by="controller").events) == ""


@pytest.mark.parametrize(("version", "hazard"), [("1.1", "KAFKA-7414"), ("2.1", "")])
def test_what_a_halted_broker_listed_is_outdated(version: str, hazard: str) -> None:
    outdated = UnknownBrokers((1, 2), (1, 2, 3), facts=(-1, 1), broker=2)
    history = History().started(1, 2, 3).elected()
    history.tell(e.BrokerStarting, 2, version)
    assert recognise(outdated, history.events) == ""
    history.tell(e.BrokerHalted, 2, "orders-0: truncation to the leader's 0 is not allowed")
    assert recognise(outdated, history.events) == hazard
    history.tell(e.BrokerStarting, 2, version)
    assert recognise(outdated, history.events) == ""


def test_a_broker_that_ended_and_is_still_listed_is_our_fault() -> None:
    history = History().started(1, 2, 3).elected().tell(e.BrokerStarting, 1, "1.0")
    listed = UnknownBrokers((1, 2, 3), (1, 2), facts=(-1, 1), broker=1)
    assert recognise(listed, history.events) == ""


def test_batches_that_no_crash_explains_are_our_fault() -> None:
    history = leading_on("nothing").tell(e.PartitionMarkedFailed, 2, ORDERS, 1, UNEXPECTED)
    assert recognise(STAYS_OUT, history.events) == ""
    other = leading_on("disk").tell(e.PartitionMarkedFailed, 2, ORDERS, 1, "KAFKA_STORAGE_ERROR")
    assert recognise(STAYS_OUT, other.events) == ""


# -- a reassignment that stays ---------------------------------------------------------------------

TOPIC, COMMAND = "/brokers/topics/orders", "/admin/reassign_partitions"
MOVE = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2]}]}'
COMMANDED = StillCommanded(COMMAND, facts=(-1, 1), partition=ORDERS)


def test_a_topic_that_is_deleted_while_it_is_reassigned() -> None:
    history = History().started(1, 2, 3).elected().created().logged(0, "create", COMMAND, MOVE)
    assert recognise(COMMANDED, history.events) == "", "the topic exists"
    history.logged(3, "delete", TOPIC)
    assert recognise(COMMANDED, history.events) == "deleted while reassigned"
    other = StillCommanded(COMMAND, facts=(-1, 1), partition=TopicPartition("other", 0))
    assert recognise(other, history.events) == ""
    assert recognise(StillReassigned(TOPIC, facts=(-1, 1), partition=ORDERS), history.events) == ""
    assert recognise(COMMANDED, history.elected(2).events) == "", "a new controller removes it"


def test_a_command_for_a_topic_that_was_deleted_before_is_our_fault() -> None:
    history = History().started(1, 2, 3).elected().created().logged(3, "delete", TOPIC)
    history.logged(0, "create", COMMAND, MOVE)
    assert recognise(COMMANDED, history.events) == ""


def test_a_reassignment_has_the_name_of_what_keeps_its_target_out_of_the_isr() -> None:
    history = proposing("2.7").tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    history.tell(e.AlterIsrProposed, 1, ORDERS, (1, 2, 3), 1, 1, "PendingExpandIsr")
    history.tell(e.AlterIsrFailed, 1, ORDERS, "shrink", "FENCED_LEADER_EPOCH", "ignored", 1)
    for cause, hazard in ((STAYS_OUT, "KAFKA-12686"), (None, "")):
        facts = -1, 1
        pending = StillReassigned(TOPIC, facts=facts, partition=ORDERS, follows_from=cause)
        assert recognise(pending, history.events) == hazard


def reassigned(*isr: int) -> History:
    """Both znodes have a reassignment to 2 and 3; the ISR has these members."""
    history = History().started(1, 2, 3).elected().created(*isr)
    data = '{"version":2,"partitions":{"0":[2,3,1]},"removing_replicas":{"0":[1]}}'
    history.logged(3, "setData", TOPIC, data)
    return history.logged(0, "create", COMMAND, MOVE)


def test_which_reassignments_wait_for_a_replica() -> None:
    """The command's target is 2, the topic's is 2 and 3."""
    for isr, waits in (((1, 3), [True, True]), ((1, 2), [False, True]), ((1, 2, 3), [False] * 2)):
        pending = [one for one in violations(reassigned(*isr)) if isinstance(one, StillReassigned)]
        assert [one.text for one in pending] == [
            f"{COMMAND} is still there",
            f"{TOPIC} is still being reassigned",
        ]
        assert [one.partition for one in pending] == [ORDERS, ORDERS]
        assert [isinstance(one.follows_from, MissingReplicas) for one in pending] == waits


# -- a write that throws ---------------------------------------------------------------------------


def test_a_proposal_that_met_an_ended_session() -> None:
    history = proposing("2.8")
    reply = ("setData", STATE, int(Code.SESSION_EXPIRED), -1, 0)
    other = ("setData", "/brokers/topics/orders/partitions/1/state", reply[2], -1, 0)
    assert recognise(STAYS_OUT, history.tell(e.ZkReply, 1, *other).events) == ""
    assert recognise(STAYS_OUT, history.tell(e.ZkReply, 1, *reply).events) == "unanswered ISR write"
    history.tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    assert recognise(STAYS_OUT, history.events) == "", "a LeaderAndIsr has ended it"


def test_a_write_that_was_not_proposed_is_tried_again() -> None:
    history = History().started(1, 2, 3).elected().created()
    history.tell(e.ZkReply, 1, "setData", STATE, int(Code.SESSION_EXPIRED), -1, 0)
    assert recognise(STAYS_OUT, history.events) == ""
