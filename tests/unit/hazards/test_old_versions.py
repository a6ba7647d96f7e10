"""Hazards of versions that have no guard yet: recognised where such a version did it."""

from __future__ import annotations

import msgspec
import pytest

from emulator.invariants.a_controller_is_there import AnotherController
from emulator.invariants.brokers_are_registered import UnknownBrokers, Unregistered
from emulator.invariants.caught_up_members_stay import ExpelledWithEverything
from emulator.invariants.controller_knows_states import ControllerDiffers, UnknownToController
from emulator.invariants.dead_brokers_are_announced import UnannouncedDeath
from emulator.invariants.demoted_leaders_are_informed import EndsAsLeader
from emulator.invariants.fetchers_follow_the_epoch import FetchesFromAnother
from emulator.invariants.followers_fetch import DoesNotFetch
from emulator.invariants.known.base import recognise
from emulator.invariants.metadata_converges import ShowsAnother, ShowsNothing
from emulator.invariants.metadata_never_moves_back import MovesBack
from emulator.invariants.nothing_is_left_to_do import StillThere
from emulator.invariants.replicas_return_to_isr import MissingReplicas, NoLeader
from emulator.invariants.the_controller_is_not_fenced import GreaterEpochObeyed
from emulator.trace import events as e
from emulator.trace.values import Lagging, Offset, PartitionState, TopicPartition
from tests.unit.invariants.history import (
    ORDERS,
    REPLICAS,
    STATE,
    History,
    payload,
    violations,
)
from tests.unit.invariants.of_hazards import at, shrunk

OTHER, OTHER_STATE = TopicPartition("other", 0), "/brokers/topics/other/partitions/0/state"


def running(version: str) -> History:
    history = History()
    for broker in REPLICAS:
        history.tell(e.BrokerStarting, broker, version)
        history.logged(broker, "create", f"/brokers/ids/{broker}", "{}")
    return history.elected().created()


def named(history: History, invariant: str) -> set[str]:
    return {
        recognise(violation, history.events)
        for violation in violations(history)
        if violation.invariant == invariant
    }


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-7152"), ("2.1", "")])
def test_a_follower_at_the_log_end_that_is_expelled(version: str, name: str) -> None:
    history = running(version).appended(1, 0, 5).copied(0, 5, 2, 3)
    history.tell(e.FollowerStateUpdated, 1, ORDERS, 3, 5, 5, 5)
    lagging = (Lagging(3, 5, 10_001),)
    history.tell(e.IsrUpdateStarted, 1, ORDERS, "shrink", (1, 2, 3), (1, 2), 5, 5, 0, 0, lagging)
    assert named(history, "caught up members stay") == {name}


@pytest.mark.parametrize(("version", "name"), [("1.0", "empty ISR"), ("1.1", "")])
def test_an_isr_that_becomes_empty(version: str, name: str) -> None:
    history = running(version).wrote(3, -1, 1, by="controller")
    assert named(history, "leader in isr") == {name}


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-6082"), ("2.1", "")])
def test_a_controller_that_writes_after_another_was_elected(version: str, name: str) -> None:
    history = running(version).elected(2, 2).wrote(3, 2, 1, 1, 2, 3, by="controller")
    assert named(history, "state has one writer") == {name}


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-6082"), ("2.1", "")])
def test_what_it_shows_moves_back_where_the_next_one_had_read_before(
    version: str, name: str
) -> None:
    """Not if the next one had read the new state: then it would have announced that one."""
    for known, expected in ((0, name), (1, "")):
        history = running(version).elected(2, 2)
        history.tell(e.ZkReply, 2, "getData", STATE, 0, known, 300)
        history.wrote(3, 2, 1, 1, 2, 3, by="controller").shown(1, 1, 2, 1, 3, at=(1,))
        old = PartitionState(ORDERS, 1, 1, 0, REPLICAS, 0, REPLICAS)
        history.tell(e.MetadataCacheUpdated, 1, 2, 2, REPLICAS, (old,))
        back = [one for one in violations(history) if isinstance(one, MovesBack)]
        assert [recognise(one, history.events) for one in back] == [expected]


@pytest.mark.parametrize(
    ("deposed", "successor", "name"),
    [(1, 0, "announced by a deposed controller"), (0, 0, ""), (1, 1, "")],
)
def test_what_a_deposed_controller_has_read_moves_back(
    deposed: int, successor: int, name: str
) -> None:
    """A leader wrote v1. The arguments are the versions that both controllers know."""
    history = running("2.1").elected(2, 2)
    history.tell(e.ControllerCacheUpdated, 2, ORDERS, 1, 0, (1, 2), successor, "elected")
    history.wrote(1, 1, 0, 1, 2)
    history.tell(e.ControllerCacheUpdated, 3, ORDERS, 1, 0, (1, 2), deposed, "notification")
    history.shown(1, 0, 1, 2, at=(1,))
    old = PartitionState(ORDERS, 1, 1, 0, REPLICAS, 0, REPLICAS)
    history.tell(e.MetadataCacheUpdated, 1, 2, 2, REPLICAS, (old,))
    back = [one for one in violations(history) if isinstance(one, MovesBack)]
    assert [recognise(one, history.events) for one in back] == [name]


def test_a_successor_may_learn_the_newer_version_while_its_announcement_waits() -> None:
    history = running("2.1").elected(2, 2)
    history.tell(e.ControllerCacheUpdated, 2, ORDERS, 1, 0, (1, 2), 0, "fail-over")
    history.tell(e.ControlRequestSent, 2, 1, "UpdateMetadata", (ORDERS,), 1)
    sent = history.events[-1].seq
    history.wrote(1, 1, 0, 1, 2)
    history.tell(e.ControllerCacheUpdated, 3, ORDERS, 1, 0, (1, 2), 1, "notification")
    history.shown(1, 0, 1, 2, at=(1,))
    history.tell(e.ControllerCacheUpdated, 2, ORDERS, 1, 0, (1, 2), 1, "notification")
    old = PartitionState(ORDERS, 1, 1, 0, REPLICAS, 0, REPLICAS)
    history.tell(e.MetadataCacheUpdated, 1, 2, 2, REPLICAS, (old,))
    history.events[-1] = msgspec.structs.replace(history.events[-1], cause=sent)
    (back,) = (one for one in violations(history) if isinstance(one, MovesBack))
    assert recognise(back, history.events) == "announced by a deposed controller"


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-6082"), ("2.1", "")])
def test_what_it_wrote_is_known_to_nobody(version: str, name: str) -> None:
    """Until the newly elected controller reads the state, or another broker writes it."""
    history = running(version).elected(2, 2).wrote(3, 2, 1, 1, 2, 3, by="controller")
    unknown = ControllerDiffers(0, 1, facts=(-1, 0), partition=ORDERS, broker=2)
    shown = ShowsAnother(0, 1, facts=(-1, 0), partition=ORDERS, broker=1)
    lacking = MissingReplicas((3,), (1, 2), facts=(-1, 0), partition=ORDERS)
    idle = DoesNotFetch(2, facts=(-1, 0), partition=ORDERS, broker=3)
    for violation in (unknown, shown, lacking, idle):
        assert recognise(violation, history.events) == name
    history.wrote(2, 2, 1, 2)
    for violation in (lacking, idle):
        assert recognise(violation, history.events) == name, "no follower is told"
    for violation in (unknown, shown):
        assert recognise(violation, history.events) == "", "the next controller is told"
    history.wrote(2, 3, 2, 1, 2, 3, by="controller")
    for violation in (unknown, shown, lacking, idle):
        assert recognise(violation, history.events) == ""


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-6082"), ("2.1", "")])
def test_the_leader_that_it_elected_is_removed_and_nobody_is_elected(
    version: str, name: str
) -> None:
    """The newly elected controller does not know that this one led."""
    nobody = NoLeader(facts=(-1, 1), partition=ORDERS)
    history = running(version).elected(2, 2).wrote(3, 2, 1, 1, 2, 3, by="controller")
    history.wrote(2, -1, 2, 1, 3, by="controller")
    assert recognise(nobody, history.events) == name
    assert recognise(nobody, history.wrote(2, 1, 3, 1, 3, by="controller").events) == ""


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-6082"), ("2.1", "")])
def test_what_it_created_is_known_to_nobody(version: str, name: str) -> None:
    """A creation by the controller itself, or by a broker that never was controller, has no
    such excuse."""
    unknown = UnknownToController(facts=(-1, 0), partition=OTHER)
    hidden = ShowsNothing(0, facts=(-1, 0), partition=OTHER, broker=1)
    for creator, expected in ((3, name), (2, ""), (1, "")):
        history = running(version).elected(2, 2)
        history.logged(creator, "create", OTHER_STATE, payload(1, 0, REPLICAS))
        assert recognise(unknown, history.events) == expected
        assert recognise(hidden, history.events) == expected
    before = running(version).logged(3, "create", OTHER_STATE, payload(1, 0, REPLICAS))
    assert recognise(unknown, before.elected(2, 2).events) == "", "the next one reads it"


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-6082"), ("2.1", "")])
def test_it_completes_a_reassignment_that_the_next_one_has_not(version: str, name: str) -> None:
    """The next one writes the old ISR once more; an assignment of its own does not explain that."""
    history = running(version).elected(2, 2).assigned(2, 3).wrote(2, 2, 1, 1, 2, 3, by="controller")
    assert named(history, "isr within assignment") == {name}
    own = running(version).elected(2, 2).elected(3, 3).assigned(2, 3)
    assert named(own.wrote(3, 2, 1, 1, 2, 3, by="controller"), "isr within assignment") == {""}


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-6082-epochs"), ("2.1", "")])
def test_an_epoch_that_is_raised_while_controller_is_anothers(version: str, name: str) -> None:
    history = running(version).elected(2, 2)
    history.logged(3, "setData", "/controller_epoch", "3", 3)
    history.tell(e.ControllerElected, 3, 3, 3)
    lacking = AnotherController(1, facts=(-1, 0), broker=2)
    assert recognise(lacking, history.events) == name
    obeyed = GreaterEpochObeyed(3, 3, 2, 2, facts=(0, len(history.events) - 1), broker=1)
    assert recognise(obeyed, history.events) == name
    assert recognise(lacking, history.elected(1, 4).events) == ""
    assert recognise(obeyed, history.events) == name, "a later election does not undo it"


@pytest.mark.parametrize(("version", "name"), [("1.0", "outdated controller change"), ("1.1", "")])
def test_a_new_controller_that_takes_its_predecessor_for_its_successor(
    version: str, name: str
) -> None:
    history = running(version).elected(2, 2).elected(3, 3)
    history.tell(e.ControllerResigned, 3, 3)
    lacking = AnotherController(0, facts=(-1, 0), broker=3)
    assert recognise(lacking, history.events) == name
    unknown = UnknownToController(facts=(-1, 0), partition=ORDERS)
    assert recognise(unknown, history.events) == name
    history.logged(3, "delete", "/controller")
    assert recognise(lacking, history.events) == "", "now all brokers run for election"


def test_a_controller_without_a_predecessor_resigns_for_another_reason() -> None:
    history = running("1.0").tell(e.ControllerResigned, 3, 1)
    assert recognise(AnotherController(0, facts=(-1, 0), broker=3), history.events) == ""


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-7482"), ("2.1", "")])
def test_a_broker_that_shuts_down_and_is_not_told_who_leads(version: str, name: str) -> None:
    history = running(version)
    believes = len(history.events)
    untold = _ends_as_leader(believes, believes + 3)
    assert recognise(untold, history.events) == ""
    history.tell(e.ControlRequestSent, 3, 1, "UpdateMetadata", (ORDERS,), 1)
    assert recognise(untold, history.events) == name
    history.tell(e.ControlRequestSent, 3, 1, "StopReplica", (ORDERS,), 1)
    assert recognise(untold, history.events) == name, "it stops a fetcher, and changes no role"
    history.tell(e.ControlRequestSent, 3, 1, "LeaderAndIsr", (ORDERS,), 1)
    assert recognise(untold, history.events) == ""
    leads = PartitionState(ORDERS, 1, 1, 0, REPLICAS, 1, REPLICAS)
    history.tell(e.LeaderAndIsr, 1, 3, 1, leads)
    history.tell(e.ControlRequestSent, 3, 1, "UpdateMetadata", (ORDERS,), 1)
    later = _ends_as_leader(believes, believes + 5)
    assert recognise(later, history.events) == name, "a new controller told it that it leads"
    other = PartitionState(ORDERS, 1, 2, 1, REPLICAS, 1, REPLICAS)
    history.tell(e.ControlRequestSent, 3, 1, "LeaderAndIsr", (ORDERS,), 1)
    history.tell(e.LeaderAndIsr, 1, 3, 1, other)
    later = _ends_as_leader(believes, believes + 7)
    assert recognise(later, history.events) == ""


@pytest.mark.parametrize(
    ("state", "before", "name"),
    [
        ("stopping", "OfflinePartition", "not told while shutting down"),
        ("stopping", "OnlinePartition", ""),
        ("paused", "OfflinePartition", ""),
    ],
)
def test_an_offline_partition_gets_a_leader_while_the_old_one_shuts_down(
    state: str, before: str, name: str
) -> None:
    history = running("2.6").tell(e.ProcessStateChanged, 1, state)
    believes = len(history.events) - 1
    history.tell(e.PartitionStateChanged, 3, 1, ORDERS, before, "OnlinePartition")
    history.tell(e.ControlRequestSent, 3, 1, "UpdateMetadata", (ORDERS,), 1)
    untold = _ends_as_leader(believes, len(history.events))
    assert recognise(untold, history.events) == name
    history.tell(e.ControlRequestSent, 3, 1, "LeaderAndIsr", (ORDERS,), 1)
    assert recognise(_ends_as_leader(believes, len(history.events)), history.events) == ""


@pytest.mark.parametrize(("version", "name"), [("0.9.0", "dead member elected"), ("0.10.2", "")])
def test_a_dead_member_is_elected_while_the_leader_shuts_down(version: str, name: str) -> None:
    history = running(version)
    believes = len(history.events) - 1
    history.tell(e.MetadataCacheUpdated, 1, 3, 1, (1, 3), (), ())
    other = PartitionState(ORDERS, 1, 2, 1, (2,), 1, REPLICAS)
    history.tell(e.LeaderAndIsr, 1, 3, 1, other)
    untold = _ends_as_leader(believes, len(history.events))
    assert recognise(untold, history.events) == name
    history.tell(e.BecomesFollower, 1, ORDERS, 2, 1, 0, 0)
    untold = _ends_as_leader(believes, len(history.events))
    assert recognise(untold, history.events) == "", "it had the leader's address after all"


def _ends_as_leader(*facts: int) -> EndsAsLeader:
    before, after = facts
    return EndsAsLeader(2, 1, 0, facts=(before, after), partition=ORDERS, broker=1)


@pytest.mark.parametrize(
    ("seen", "left", "why", "name"),
    [
        ((1, 2, 3), (1,), "replica removed", "leader left with its reassignment"),
        ((1, 2), (1,), "replica removed", ""),
        ((1, 2, 3), (1, 2), "replica removed", ""),
        ((1, 2, 3), (1,), "elected", ""),
    ],
    ids=["left", "never all in the isr", "one stays", "an election"],
)
def test_a_leader_leaves_with_its_reassignment(
    seen: tuple[int, ...], left: tuple[int, ...], why: str, name: str
) -> None:
    """orders-0 moves from broker 1 to 2 and 3, which broker 1 removes just then."""
    nobody = NoLeader(facts=(-1, 1), partition=ORDERS)
    history = running("0.8.2").tell(e.IsrUpdated, 1, ORDERS, "expand", seen, 2, 0)
    gone = (ORDERS, -1, 2, left, 3, why, (2, 3))
    history.tell(e.ControllerCacheUpdated, 3, *gone)
    assert recognise(nobody, history.events) == name


@pytest.mark.parametrize(
    ("version", "assigned", "name"),
    [("0.10.2", "[1,2]", "KAFKA-5758"), ("1.0", "[1,2]", ""), ("0.10.2", "[1,2,3]", "")],
    ids=["moved away", "read as empty", "still there"],
)
def test_a_fetch_that_fails_for_a_partition_that_moved_away(
    version: str, assigned: str, name: str
) -> None:
    """Broker 3 still fetches other-0 with orders-0."""
    history = running(version).wrote(1, 1, 0, 1, 2)
    history.logged(1, "create", "/brokers/topics/other", f'{{"partitions":{{"0":{assigned}}}}}')
    missing = MissingReplicas((3,), (1, 2), facts=(-1, 0), partition=ORDERS)
    assert recognise(missing, history.events) == ""
    history.tell(e.FetchSent, 3, 1, (Offset(ORDERS, 0), Offset(OTHER, 0)), 0)
    assert recognise(missing, history.events) == name


@pytest.mark.parametrize(("version", "name"), [("2.1", "KAFKA-9212"), ("2.4", "")])
def test_a_leader_epoch_that_is_raised_and_forgotten(version: str, name: str) -> None:
    history = running(version).wrote(3, 1, 1, 1, 2, 3, by="controller")
    stale = ShowsAnother(0, 1, facts=(-1, 0), partition=ORDERS, broker=2)
    assert recognise(stale, history.events) == name
    assert recognise(stale, history.wrote(1, 1, 1, 1, 2).events) == ""
    same = running(version).wrote(3, 1, 0, 1, 2, 3, by="controller")
    assert recognise(stale, same.events) == ""


@pytest.mark.parametrize(("version", "name"), [("1.0", "left notification"), ("1.1", "")])
def test_a_notification_that_a_new_controller_finds(version: str, name: str) -> None:
    history = running(version)
    path = "/isr_change_notification/isr_change_0000000000"
    history.logged(1, "create", path, "{}")
    left = StillThere(path, facts=(-1, len(history.events) - 1))
    assert recognise(left, history.events) == ""
    assert recognise(left, history.elected(2, 2).events) == name
    history.logged(1, "create", path[:-1] + "1", "{}")
    assert recognise(left, history.events) == ""


@pytest.mark.parametrize(("version", "name"), [("1.1", "KAFKA-7128"), ("2.1", "")])
def test_a_follower_that_joins_below_the_start_of_the_epoch(version: str, name: str) -> None:
    history = running(version).appended(1, 0, 5).copied(0, 5, 2).hw(1, 3)
    history.wrote(1, 1, 0, 1, 2).hw(1, 5).wrote(3, 2, 1, 2, by="controller")
    history.copied(0, 3, 3).told(2, 1, 2)
    history.tell(e.FollowerStateUpdated, 2, ORDERS, 3, 3, 5, 5)
    history.tell(e.IsrUpdateStarted, 2, ORDERS, "expand", (2,), (2, 3), 3, 5, 1, 2)
    history.wrote(2, 2, 1, 2, 3)
    assert named(history, "committed records survive") == {name}


@pytest.mark.parametrize(("version", "name"), [("0.10.2", "KIP-101"), ("1.0", "")])
def test_a_follower_that_truncates_what_is_committed_and_leads(version: str, name: str) -> None:
    history = running(version).appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5)
    history.tell(e.LogTruncated, 3, ORDERS, 5, 3)
    history.wrote(3, 3, 1, 2, 3, by="controller").told(3, 1, 2, 3)
    assert named(history, "committed records survive") == {name}


def test_a_follower_that_truncates_what_its_old_leader_commits_a_moment_later() -> None:
    """On the word of a fetch that was on its way when the new leader was made known."""
    history = running("0.8.2").appended(1, 0, 5).copied(0, 5, 2, 3)
    history.tell(e.LogTruncated, 3, ORDERS, 5, 3)
    assert named(history.hw(1, 3), "hw within isr") == set(), "what it took is not committed yet"
    assert named(history.hw(1, 5), "hw within isr") == {"KIP-101"}


def test_a_follower_that_truncates_what_nobody_committed_is_no_such_follower() -> None:
    history = running("0.8.2").appended(1, 0, 5).copied(0, 4, 2, 3)
    history.tell(e.LogTruncated, 3, ORDERS, 4, 4)
    assert named(history.hw(1, 5), "hw within isr") == {""}


@pytest.mark.parametrize(("version", "name"), [("1.1", "KIP-279"), ("2.1", "")])
def test_a_follower_that_keeps_records_of_another_leader_and_joins(version: str, name: str) -> None:
    history = running(version).appended(1, 0, 5).copied(0, 5, 2).copied(0, 3, 3)
    history.wrote(1, 1, 0, 1, 2).hw(1, 5)
    history.tell(e.BecomesFollower, 3, ORDERS, 1, 0, 3, 0).copied(3, 5, 3, epoch=1)
    history.wrote(1, 1, 0, 1, 2, 3)
    assert named(history, "committed records survive") == {name}


@pytest.mark.parametrize(("version", "name"), [("2.4", "KAFKA-10706"), ("2.6", "")])
def test_a_follower_that_led_without_a_record_and_does_not_fetch(version: str, name: str) -> None:
    history = running(version).tell(e.BecomesLeader, 2, ORDERS, 1, 0, 0)
    missing = MissingReplicas((2,), (1, 3), facts=(-1, 1), partition=ORDERS)
    assert recognise(missing, history.events) == "", "it leads"
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 2, 0, 0)
    assert recognise(missing, history.events) == name
    both = msgspec.structs.replace(missing, missing=(2, 3))
    assert recognise(both, history.events) == "", "3 has not led"
    fetched = (Offset(ORDERS, 0),)
    assert recognise(missing, history.tell(e.FetchSent, 2, 1, fetched, 0).events) == ""


@pytest.mark.parametrize(
    ("version", "leader_leo", "to_offset", "name"),
    [
        ("0.8.2", 6, 0, "KAFKA-2143"),
        ("0.8.2", 5, 0, ""),
        ("0.8.2", 6, 3, ""),
        ("0.9.0", 6, 0, ""),
    ],
)
def test_a_follower_that_drops_its_log_when_its_leader_has_grown_past_it(
    version: str, leader_leo: int, to_offset: int, name: str
) -> None:
    """Its fetch at 6 was out of range, as its leader's log ended at 5."""
    history = running(version).appended(1, 0, 5).copied(0, 5, 2, 3).hw(1, 5).hw(3, 5)
    history.tell(e.BecomesFollower, 3, ORDERS, 1, 0, 5, 5).copied(5, 6, 3, epoch=1)
    if leader_leo > 5:
        history.appended(1, 5, leader_leo)
    history.tell(e.LogTruncated, 3, ORDERS, 6, to_offset)
    assert named(history, "truncations spare the committed") == {""}, "no fetcher thread did it"
    history.events[-1] = msgspec.structs.replace(
        history.events[-1], thread="ReplicaFetcherThread-0-1"
    )
    assert named(history, "truncations spare the committed") == {name}


@pytest.mark.parametrize(("version", "name"), [("0.8.2", "KAFKA-1546"), ("0.9.0", "")])
def test_a_follower_that_is_expelled_for_the_messages_that_it_lacks(
    version: str, name: str
) -> None:
    history = running(version).appended(1, 0, 5).copied(0, 5, 2, 3)
    for _ in range(500):
        history.tell(e.FollowerStateUpdated, 1, ORDERS, 3, 5, 5, 0)
    history.appended(1, 5, 900)
    lagging = (Lagging(3, 5, 1),)
    history.tell(e.IsrUpdateStarted, 1, ORDERS, "shrink", (1, 2, 3), (1, 2), 5, 900, 0, 0, lagging)
    assert named(history, "caught up members stay") == {name}


@pytest.mark.parametrize(("version", "name"), [("0.9.0", "KAFKA-4485"), ("0.10.2", "")])
def test_a_follower_that_is_expelled_although_it_is_just_behind(version: str, name: str) -> None:
    history = running(version).appended(1, 0, 4)
    at(history.tell(e.FollowerStateUpdated, 1, ORDERS, 2, 4, 4, 0), 500)
    shrunk(at(history.appended(1, 4, 5), 900), 4)
    assert named(at(history, 1000), "caught up members stay") == {name}


@pytest.mark.parametrize(
    ("version", "through_the_controller", "name"),
    [("2.8", True, "KAFKA-13091"), ("3.3", True, ""), ("2.8", False, "")],
)
def test_a_high_watermark_that_is_not_looked_at_when_a_shrink_is_committed(
    version: str, through_the_controller: bool, name: str
) -> None:
    history = running(version).appended(1, 0, 5)
    for follower, leo in ((2, 0), (3, 5)):
        history.tell(e.FollowerStateUpdated, 1, ORDERS, follower, leo, 5, 0)
    if through_the_controller:
        history.tell(e.AlterIsrProposed, 1, ORDERS, (1, 3), 0, 0, "PendingShrinkIsr")
    history.wrote(1, 1, 0, 1, 3).tell(e.IsrUpdated, 1, ORDERS, "shrink", (1, 3), 1, 0)
    for _ in range(2000):
        history.tell(e.FollowerStateUpdated, 1, ORDERS, 3, 5, 5, 0)
    assert named(history.hw(1, 5), "acks follow the isr") == {name}


@pytest.mark.parametrize(("version", "name"), [("2.1", "KAFKA-7235"), ("2.4", "")])
def test_a_request_that_a_new_process_obeys(version: str, name: str) -> None:
    history = running(version)
    written = len(history.events) - 1
    history.tell(e.BrokerStarting, 2, version).tell(
        e.ControlRequestSent, 3, 2, "StopReplica", (ORDERS,), 1
    )
    history.events[-1] = msgspec.structs.replace(history.events[-1], cause=written)
    history.tell(e.StopReplica, 2, 3, 1, ORDERS, 0, False)
    assert named(history, "requests reach the intended process") == {name}
    stays_out = MissingReplicas((2,), (1, 3), facts=(-1, 1), partition=ORDERS)
    idle = DoesNotFetch(1, facts=(-1, 1), partition=ORDERS, broker=2)
    assert [recognise(v, history.events) for v in (stays_out, idle)] == [name, name]
    history.tell(e.BecomesFollower, 2, ORDERS, 1, 0, 0, 0)
    assert recognise(idle, history.events) == name, "a role that had waited behind the request"
    follows = PartitionState(ORDERS, 1, 1, 1, (1, 3), 1, REPLICAS)
    history.tell(e.LeaderAndIsr, 2, 3, 1, follows).tell(e.BecomesFollower, 2, ORDERS, 1, 1, 0, 0)
    assert recognise(idle, history.events) == ""


@pytest.mark.parametrize(("version", "name"), [("0.8.2", "KAFKA-1387"), ("0.9.0", "")])
def test_a_broker_that_waits_for_its_own_registration_to_go(version: str, name: str) -> None:
    path = "/brokers/ids/2"
    history = running(version).tell(e.BrokerStarting, 2, version)
    unregistered = UnknownBrokers((), REPLICAS, facts=(0, 1), broker=2)
    missing = MissingReplicas((2,), (1, 3), facts=(-1, 1), partition=ORDERS)
    found_one = (e.ZkReply, 2, "create", path, -110, -1, 1_000)
    history.tell(*found_one)
    assert recognise(unregistered, history.events) == "", "that of its former life is waited out"
    history.logged(2, "delete", path).logged(2, "create", path, "{}").tell(*found_one)
    assert [recognise(v, history.events) for v in (unregistered, missing)] == [name, name]
    others = msgspec.structs.replace(unregistered, broker=3)
    assert recognise(others, history.events) == ""
    assert recognise(unregistered, history.tell(e.BrokerStarted, 2).events) == ""


@pytest.mark.parametrize(("version", "name"), [("0.9.0", "KAFKA-4443"), ("0.10.2", "")])
def test_a_follower_that_does_not_know_yet_that_its_leader_lives(version: str, name: str) -> None:
    history = running(version).tell(e.BrokerStarting, 2, version)
    told = PartitionState(ORDERS, 1, 1, 0, (1, 3), 1, REPLICAS)
    missing = MissingReplicas((2,), (1, 3), facts=(-1, 1), partition=ORDERS)
    history.tell(e.LeaderAndIsr, 2, 3, 1, told)
    assert recognise(missing, history.events) == name
    both = msgspec.structs.replace(missing, missing=(1, 2))
    assert recognise(both, history.events) == "", "1 was told nothing"
    history.tell(e.MetadataCacheUpdated, 2, 3, 1, REPLICAS, ())
    assert recognise(missing, history.events) == name, "it is not told again"
    history.tell(e.LeaderAndIsr, 2, 3, 1, told).tell(e.BecomesFollower, 2, ORDERS, 1, 0, 0, 0)
    assert recognise(missing, history.events) == ""


def test_a_follower_whose_metadata_have_its_leader_has_no_such_excuse() -> None:
    history = running("0.9.0").tell(e.MetadataCacheUpdated, 2, 3, 1, REPLICAS, ())
    history.tell(e.LeaderAndIsr, 2, 3, 1, PartitionState(ORDERS, 1, 1, 0, (1, 3), 1, REPLICAS))
    lacking = MissingReplicas((2,), (1, 3), facts=(-1, 1), partition=ORDERS)
    assert recognise(lacking, history.events) == ""


@pytest.mark.parametrize(("version", "name"), [("1.0", "KAFKA-7414"), ("2.1", "")])
def test_a_broker_that_ends_itself_as_its_leaders_log_is_shorter(version: str, name: str) -> None:
    history = running(version)
    reason = "orders-0: truncation to the leader's 0 is not allowed"
    history.tell(e.BrokerHalted, 2, reason)
    gone = Unregistered(facts=(-1, 1), broker=2)
    unknown = UnknownBrokers((1, 3), REPLICAS, facts=(1, 2), broker=1)
    lacking = MissingReplicas((2,), (1, 3), facts=(-1, 1), partition=ORDERS)
    for violation in (gone, unknown, lacking):
        assert recognise(violation, history.events) == name
    assert recognise(msgspec.structs.replace(gone, broker=3), history.events) == ""
    fewer = msgspec.structs.replace(unknown, known=(1,))
    assert recognise(fewer, history.events) == "", "3 did not"
    assert recognise(gone, history.tell(e.BrokerStarting, 2, version).events) == ""
    assert recognise(gone, history.tell(e.BrokerHalted, 2, "no log directory").events) == ""


@pytest.mark.parametrize(("sent_first", "name"), [(True, "KAFKA-972"), (False, "")])
def test_a_list_of_brokers_that_was_sent_before_one_joined(sent_first: bool, name: str) -> None:
    """It arrives afterwards in both cases."""
    history = running("0.8.2")
    sent = (e.ControlRequestSent, 3, 1, "UpdateMetadata", (), 1)
    joined = (e.BrokerChange, 3, (2,), (), (), REPLICAS)
    for each in (sent, joined) if sent_first else (joined, sent):
        history.tell(*each)
    at = next(one.seq for one in history.events if isinstance(one, e.ControlRequestSent))
    history.tell(e.MetadataCacheUpdated, 1, 3, 1, (1, 3), ())
    history.events[-1] = msgspec.structs.replace(history.events[-1], cause=at)
    unknown = UnknownBrokers((1, 3), REPLICAS, facts=(1, len(history.events) - 1), broker=1)
    assert recognise(unknown, history.events) == name


# -- a request that is half applied ----------------------------------------------------------------


def half_applied(*, then: str = "", entries: tuple[TopicPartition, ...] = (ORDERS, OTHER)) -> str:
    """Broker 3 writes the ISR of `other-0`, and then follows 2 in `orders-0`, in a request with
    these entries; two seconds later it still fetches from 1. `then`: what happens in between."""
    history = running("0.8.2")
    history.tell(e.IsrUpdateStarted, 3, OTHER, "shrink", REPLICAS, (3,), 5, 5, 1, 2)
    writer = history.events[-1].thread
    first = len(history.events)
    for name in entries:
        history.tell(e.LeaderAndIsr, 3, 1, 1, PartitionState(name, 1, 2, 1, REPLICAS, 1, REPLICAS))
    history.tell(e.BecomesFollower, 3, ORDERS, 2, 1, 5, 5)
    for seq in range(first, len(history.events)):
        history.events[seq] = msgspec.structs.replace(history.events[seq], thread="handler-7")
    match then:
        case "written":
            history.tell(e.IsrUpdated, 3, OTHER, "shrink", (3,), 3, 1)
        case "proposed":
            history.tell(e.AlterIsrProposed, 3, OTHER, (3,), 1, 2, "PendingShrinkIsr")
        case "failed":
            history.tell(e.ThreadFailed, 3, "isr-expiration", "SESSION_EXPIRED")
            assert history.events[-1].thread == writer
        case "role":
            history.tell(e.BecomesFollower, 3, OTHER, 2, 1, 5, 5)
            history.events[-1] = msgspec.structs.replace(history.events[-1], thread="handler-7")
    for late_ms in (0, 2000):
        at(history.tell(e.FetchSent, 3, 1, (Offset(ORDERS, 5),), 0), late_ms)
    (late,) = (one for one in violations(history) if isinstance(one, FetchesFromAnother))
    return recognise(late, history.events)


def test_a_role_that_waits_for_an_isr_write() -> None:
    assert half_applied() == "lock held across ZooKeeper"


def test_a_role_that_waits_for_no_isr_write_is_our_fault() -> None:
    for then in ("written", "proposed", "failed", "role"):
        assert half_applied(then=then) == "", then
    assert half_applied(entries=(ORDERS,)) == "", "the write is of no partition in the request"


@pytest.mark.parametrize(
    ("thread", "fetches_again", "name"),
    [
        ("ReplicaFetcherThread-0-2", False, "lock held across ZooKeeper"),
        ("ReplicaFetcherThread-0-2", True, ""),
        ("kafka-scheduler/isr-expiration", False, ""),
    ],
)
def test_a_role_that_waits_for_a_fetcher_which_asks_zookeeper(
    thread: str, fetches_again: bool, name: str
) -> None:
    history = running("0.8.2")
    history.tell(e.ZkSent, 3, "getData", "/config/topics/other")
    history.events[-1] = msgspec.structs.replace(history.events[-1], thread=thread)
    history.tell(e.BecomesFollower, 3, ORDERS, 2, 1, 5, 5)
    if fetches_again:
        history.tell(e.FetchSent, 3, 2, (Offset(OTHER, 5),), 0)
        history.events[-1] = msgspec.structs.replace(history.events[-1], thread=thread)
    for late_ms in (0, 2000):
        at(history.tell(e.FetchSent, 3, 1, (Offset(ORDERS, 5),), 0), late_ms)
    (late,) = (one for one in violations(history) if isinstance(one, FetchesFromAnother))
    assert recognise(late, history.events) == name


@pytest.mark.parametrize(("took_ms", "name"), [(1000, "lock held across ZooKeeper"), (500, "")])
def test_a_follower_whose_fetch_waits_for_an_isr_write_is_removed(took_ms: int, name: str) -> None:
    history = running("2.4").appended(1, 0, 5)
    history.tell(e.IsrUpdateStarted, 1, ORDERS, "expand", (1, 3), REPLICAS, 5, 5, 0, 0)
    at(history.tell(e.IsrUpdated, 1, ORDERS, "expand", REPLICAS, 1, 0), took_ms)
    lagging = (Lagging(2, 4, 1500),)
    history.tell(e.IsrUpdateStarted, 1, ORDERS, "shrink", REPLICAS, (1, 3), 5, 5, 0, 1, lagging)
    facts = -1, len(at(history, 1500).events) - 1
    removed = ExpelledWithEverything(REPLICAS, 4, 5, facts=facts, partition=ORDERS, broker=2)
    assert recognise(removed, history.events) == name


# -- a fetcher thread that ends late ---------------------------------------------------------------


def unannounced(
    version: str,
    *,
    waits_ms: int = 9000,
    fetches_on: bool = False,
    next_request: str = "UpdateMetadata",
    to: tuple[int, ...] = (2, 3),
) -> str:
    """Broker 1 dies, and is back after ten seconds. 2 and 3 get a LeaderAndIsr (only those in
    `to`), and their fetcher threads end so much later (`waits_ms`); then they are sent the next
    request. `fetches_on`: the threads got the responses to their fetches meanwhile."""
    history = running(version).tell(e.BrokerChange, 3, (), (1,), (), (2, 3))
    begun_us = history.events[-1].t
    fetcher = "ReplicaFetcherThread-0-1"

    def tell(after_ms: int, thread: str, kind: type, broker: int, *fields: object) -> None:
        history.tell(kind, broker, *fields)
        history.events[-1] = msgspec.structs.replace(
            history.events[-1], t=begun_us + after_ms * 1000, thread=thread
        )

    state = PartitionState(ORDERS, 1, 2, 1, (2, 3), 1, REPLICAS)
    for broker in to:
        tell(0, fetcher, e.FetchSent, broker, 1, (Offset(ORDERS, 0),), 0)
        tell(0, "send", e.ControlRequestSent, 3, broker, "LeaderAndIsr", (ORDERS,), 1)
        tell(0, "handler-0", e.LeaderAndIsr, broker, 3, 1, state)
        tell(0, "handler-0", e.BecomesFollower, broker, ORDERS, 2, 1, 0, 0)
        if fetches_on:
            tell(1000, fetcher, e.FetchSent, broker, 1, (Offset(ORDERS, 0),), 0)
    for broker in to:
        tell(waits_ms, fetcher, e.FetcherStopped, broker, 1, 0)
    queued_by = len(history.events) - 1
    tell(10_000, "controller", e.BrokerChange, 3, (1,), (), (), REPLICAS)
    for broker in to:
        tell(10_000, "send", e.ControlRequestSent, 3, broker, next_request, (ORDERS,), 1)
        history.events[-1] = msgspec.structs.replace(history.events[-1], cause=queued_by)
    (untold,) = (one for one in violations(history) if isinstance(one, UnannouncedDeath))
    return recognise(untold, history.events)


@pytest.mark.parametrize(("version", "name"), [("1.0", "KAFKA-6051"), ("1.1", "")])
def test_brokers_that_wait_for_a_fetch_from_a_dead_one(version: str, name: str) -> None:
    assert unannounced(version) == name


def test_an_announcement_that_waits_for_something_else_is_our_fault() -> None:
    assert unannounced("1.0", waits_ms=4000) == "", "there was time for it afterwards"
    assert unannounced("1.0", fetches_on=True) == "", "the fetch had its response"
    assert unannounced("1.0", next_request="StopReplica") == "", "there was none to be sent"
    assert unannounced("1.0", to=(2,)) == "", "3 did not wait"


@pytest.mark.parametrize(("numbers", "name"), [((0, 1), "overwritten assignment"), ((0,), "")])
def test_a_partition_is_added_over_a_reassignment(numbers: tuple[int, ...], name: str) -> None:
    """Broker 1 writes the assignment that it had read before; a write that adds no partition
    would be a controller's."""
    history = running("2.6").assigned(1, 2).assigned(1, 2, 3)
    partitions = {str(number): [1, 2] for number in numbers}
    data = msgspec.json.encode({"version": 2, "partitions": partitions}).decode()
    history.logged(1, "setData", "/brokers/topics/orders", data)
    assert named(history.wrote(1, 1, 0, 1, 2, 3), "isr within assignment") == {name}
