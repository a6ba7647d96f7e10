"""Two traces each of the invariants that hazards break: what followers have and miss, who is
refused, who may join."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from emulator.trace import events as e
from emulator.trace.values import Lagging, LoggedOp, Offset, PartitionState, TopicPartition
from tests.unit.invariants.history import ORDERS, REPLICAS, History


class Case(NamedTuple):
    """Two traces of one invariant."""

    invariant: str
    keeps: Callable[[], History]
    breaks: Callable[[], History]


def quiet() -> History:
    """Three brokers, a controller, one partition; every broker knows everything."""
    history = History().started(1, 2, 3).elected().created()
    return history.shown(0, 0, *REPLICAS)


def expelled_at(leo: int) -> History:
    """Follower 2 is taken out with this log end, where the leader's is 5."""
    history = quiet().appended(1, 0, 5)
    history.tell(e.FollowerStateUpdated, 1, ORDERS, 2, leo, 5, 0)
    return shrunk(history, leo)


def expelled_after_a_fetch_from(leader: int) -> History:
    """Follower 2 fetched half a second ago, and lacks what broker 1 has appended since."""
    history = quiet().appended(1, 0, 4)
    at(history.tell(e.FollowerStateUpdated, leader, ORDERS, 2, 4, 4, 0), 500)
    at(history.appended(1, 4, 5), 900)
    return at(shrunk(history, 4), 1000)


def shrunk(history: History, leo: int) -> History:
    lagging = (Lagging(2, leo, 5000),)
    return history.tell(
        e.IsrUpdateStarted, 1, ORDERS, "shrink", REPLICAS, (1, 3), 5, 5, 0, 0, lagging
    )


def obeying(epoch: int) -> History:
    """2 owns /controller in epoch 2; broker 1 obeys 3's UpdateMetadata of this epoch."""
    history = quiet()
    ops = (LoggedOp("delete", "/controller"), LoggedOp("create", "/controller", '{"brokerid":2}'))
    history.tell(e.ZkTransaction, 2, 1, "multi", None, None, None, False, ops)
    history.tell(e.ControllerElected, 2, 2, 2)
    return history.tell(e.MetadataCacheUpdated, 1, 3, epoch, REPLICAS, ())


def at(history: History, ms: int) -> History:
    """Shift the last event by this time."""
    last = history.events[-1]
    history.events[-1] = msgspec.structs.replace(last, t=last.t + ms * 1000)
    return history


def alone(late_ms: int) -> History:
    """The leader shrinks to itself with five records that follower 2 lacks; its high watermark
    follows after this time."""
    history = quiet().appended(1, 0, 5)
    for follower, leo in ((2, 0), (3, 5)):
        history.tell(e.FollowerStateUpdated, 1, ORDERS, follower, leo, 5, 0)
    history.wrote(1, 1, 0, 1, 3).tell(e.IsrUpdated, 1, ORDERS, "shrink", (1, 3), 1, 0)
    return at(history.hw(1, 5), late_ms)


def joins(*, registered: bool) -> History:
    """The leader decides to take 2 in; it may be gone when that is written."""
    history = quiet().wrote(1, 1, 0, 1, 3)
    decision = ("expand", (1, 3), (1, 3, 2), 0, 0, 0, 1)
    history.tell(e.IsrUpdateStarted, 1, ORDERS, *decision)
    if not registered:
        gone = ("closeSession", None, None, None, False, (), None, None, ("/brokers/ids/2",))
        history.tell(e.ZkTransaction, 2, 1, *gone)
    return history.wrote(1, 1, 0, 1, 3, 2)


def shown_deposed(leader: int) -> History:
    """Broker 1, which leads in epoch 0, shows who leads in epoch 1, and ends."""
    others = (r for r in REPLICAS if r != leader)
    return quiet().shown(1, 1, leader, *others, at=(1,)).tell(e.BrokerExited, 1)


def ends_before_its_role(*, arrives: bool) -> History:
    """Broker 1 has registered again and shows who leads in epoch 1; 1 ends before the LeaderAndIsr
    that is to tell it arrives, or ignores it (`arrives`)."""
    history = quiet().tell(e.BrokerRegistered, 1, 7).shown(1, 1, 2, 1, 3, at=(1,))
    if arrives:
        follows = PartitionState(ORDERS, 1, 2, 1, (2, 1, 3), 1, REPLICAS)
        history.tell(e.LeaderAndIsr, 1, 3, 1, follows)
        history.tell(e.LeaderAndIsrIgnored, 1, 3, 1, follows, "STALE_CONTROLLER_EPOCH")
    return history.tell(e.BrokerExited, 1)


def moved_away() -> History:
    """The replica of broker 1 moves away, which a StopReplica is to tell it; it ends before."""
    state = PartitionState(ORDERS, 1, 2, 1, (2, 3), 1, (2, 3))
    history = quiet().tell(e.MetadataCacheUpdated, 1, 3, 1, REPLICAS, (state,))
    return history.tell(e.BrokerExited, 1)


def dead_and_back(*, told: bool = False, elected_at_ms: int = 0) -> History:
    """Broker 2 dies and is new again ten seconds later. `elected_at_ms`: when the controller has
    elected a leader and sends the first LeaderAndIsr because of that."""
    history = quiet().tell(e.BrokerChange, 3, (), (2,), (), (1, 3))
    if elected_at_ms:
        cause = history.events[-1].seq + 1
        history.tell(e.ControllerEventQueued, 3, "BrokerChange", 0)
        history.tell(e.ControlRequestSent, 3, 1, "LeaderAndIsr", (ORDERS,), 1)
        history.events[-1] = msgspec.structs.replace(history.events[-1], cause=cause)
        at(history, elected_at_ms)
    if told:
        history.tell(e.MetadataCacheUpdated, 1, 3, 1, (1, 3), ())
    return at(history.tell(e.BrokerChange, 3, (2,), (), (), (1, 2, 3)), 10_000)


def told_twice(
    versions: tuple[int, int],
    *,
    told_first: bool = False,
    queued_first: bool = False,
    notified: int = 0,
    failed_over: bool = False,
    listed: bool = True,
) -> History:
    """All of twelve partitions, two times; each time what the deletion of a notification brings
    about, or what the notification itself does (`told_first`), or what was queued before the
    deletion and waited for its send thread (`queued_first`). Meanwhile there is another
    notification, of so many partitions (`notified`). `failed_over`: the controller is elected again
    after each deletion, and sends everything because of that. `listed`: it asks for the list of
    notifications before it sends; an election that deletes some does not ask again."""
    history = quiet()
    names = tuple(TopicPartition("bills", n) for n in range(12))
    if notified:
        named = [{"topic": n.topic, "partition": n.partition} for n in names[:notified]]
        history.logged(
            1,
            "create",
            "/isr_change_notification/isr_change_0000000001",
            msgspec.json.encode({"partitions": named}).decode(),
        )
    for version in versions:
        states = tuple(PartitionState(n, 1, 1, 0, REPLICAS, version, REPLICAS) for n in names)
        queued_by = len(history.events) - 1
        if not told_first:
            history.logged(3, "delete", "/isr_change_notification/isr_change_0000000000")
        if failed_over:
            history.elected(3, 2)
        if not queued_first:
            history.tell(e.ControllerEventQueued, 3, "IsrChangeNotification", 0)
            if listed:
                history.tell(e.ZkRequest, 3, "getChildren2", "/isr_change_notification")
            history.tell(e.ZkReply, 3, "getChildren2", "/isr_change_notification", 0, 0, 900)
            queued_by = len(history.events) - 1
        sent = len(history.events)
        history.tell(e.ControlRequestSent, 3, 1, "UpdateMetadata", names, 1)
        history.events[-1] = msgspec.structs.replace(history.events[-1], cause=queued_by)
        if told_first:
            history.logged(3, "delete", "/isr_change_notification/isr_change_0000000000")
        history.tell(e.MetadataCacheUpdated, 1, 3, 1, REPLICAS, states)
        history.events[-1] = msgspec.structs.replace(history.events[-1], cause=sent)
    return history


def fetched(*leaders: int) -> History:
    """2 follows 1, and fetches from these, one after the other."""
    history = quiet()
    for leader in leaders:
        history.tell(e.FetchSent, 2, leader, (Offset(ORDERS, 0),), 0)
    return history.tell(e.FetchSent, 3, 1, (Offset(ORDERS, 0),), 0)


def fetched_for_seconds(*, paused: bool) -> History:
    """2 follows 1 and fetches from 3, and again two seconds later; `paused`: in between."""
    history = quiet().tell(e.FetchSent, 2, 3, (Offset(ORDERS, 0),), 0)
    if paused:
        history.tell(e.ProcessStateChanged, 2, "paused").tell(e.ProcessStateChanged, 2, "up")
    history.tell(e.FetchSent, 2, 3, (Offset(ORDERS, 0),), 0)
    last = history.events[-1]
    history.events[-1] = msgspec.structs.replace(last, t=last.t + 2_000_000)
    return history


def bounced(*, written_before: bool) -> History:
    """2 is started anew and obeys a LeaderAndIsr, written before that or after it."""
    history = quiet()
    if not written_before:
        history.tell(e.BrokerStarting, 2, "2.6")
    history.tell(e.BrokerChange, 3, (), (), (), REPLICAS)
    cause = history.events[-1].seq
    if written_before:
        history.tell(e.BrokerStarting, 2, "2.6")
    history.tell(e.ControlRequestSent, 3, 2, "LeaderAndIsr", (ORDERS,), 1)
    history.events[-1] = msgspec.structs.replace(history.events[-1], cause=cause)
    return history.tell(
        e.LeaderAndIsr, 2, 3, 1, PartitionState(ORDERS, 1, 1, 0, REPLICAS, 0, REPLICAS)
    )


CASES = [
    Case(
        "fetchers follow the epoch",
        lambda: fetched(1, 3, 3),
        lambda: fetched_for_seconds(paused=False),
    ),
    Case(
        "fetchers follow the epoch",
        lambda: fetched_for_seconds(paused=True),
        lambda: fetched_for_seconds(paused=False),
    ),
    Case("followers fetch", lambda: fetched(1), fetched),
    Case(
        "requests reach the intended process",
        lambda: bounced(written_before=False),
        lambda: bounced(written_before=True),
    ),
    Case("caught up members stay", lambda: expelled_at(4), lambda: expelled_at(5)),
    Case("the controller is not fenced", lambda: obeying(2), lambda: obeying(3)),
    Case("acks follow the isr", lambda: alone(900), lambda: alone(2000)),
    Case("eligible members join", lambda: joins(registered=True), lambda: joins(registered=False)),
    Case("demoted leaders are informed", lambda: shown_deposed(1), lambda: shown_deposed(2)),
    Case("demoted leaders are informed", moved_away, lambda: shown_deposed(3)),
    Case(
        "demoted leaders are informed",
        lambda: ends_before_its_role(arrives=False),
        lambda: ends_before_its_role(arrives=True),
    ),
    Case(
        "dead brokers are announced",
        lambda: dead_and_back(told=True),
        dead_and_back,
    ),
    Case(
        "dead brokers are announced",
        lambda: dead_and_back(elected_at_ms=6_000),
        lambda: dead_and_back(elected_at_ms=4_000),
    ),
    Case("updates carry something new", lambda: told_twice((0, 1)), lambda: told_twice((0, 0))),
    Case(
        "updates carry something new",
        lambda: told_twice((0, 0), told_first=True),
        lambda: told_twice((0, 0)),
    ),
    Case(
        "updates carry something new",
        lambda: told_twice((0, 0), queued_first=True),
        lambda: told_twice((0, 0)),
    ),
    Case(
        "updates carry something new",
        lambda: told_twice((0, 0), notified=12),
        lambda: told_twice((0, 0), notified=11),
    ),
    Case(
        "updates carry something new",
        lambda: told_twice((0, 0), failed_over=True),
        lambda: told_twice((0, 0)),
    ),
    Case(
        "updates carry something new",
        lambda: told_twice((0, 0), listed=False),
        lambda: told_twice((0, 0)),
    ),
]
