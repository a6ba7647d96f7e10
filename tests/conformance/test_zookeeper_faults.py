"""The effects of ZooKeeper faults on a cluster, and the recovery, the same on both ZooKeepers.

Lines are told by broker, in order: what its session heard, what it registered, what became of its
ISR updates. Where threads of a real server race (see each test), a play that met the other outcome
is played again, and said so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from emulator.runs.play import PlayOptions, play
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.sink import Sink

SIMULATED, EMBEDDED = "simulated", "embedded"
PLAYS = 5
SESSION_MS = 6000
KEPT = ["Disconnected", "SyncConnected"]
EXPIRED = ["Disconnected", "Expired", "SyncConnected", "registers"]
OVERTAKEN = ["Disconnected", "SyncConnected", *EXPIRED]
"""A real server's only: it takes the client in, and then looks at what had run out before."""
STATE = "/brokers/topics/orders/partitions/0/state"


@dataclass
class Told:
    """A run, and what its brokers tell of it after the first action of `faults`."""

    events: list[AnyEvent]

    def of(self, broker: int) -> list[str]:
        return [line for event in self.events if event.broker == broker for line in _lines(event)]

    def sessions_of(self, broker: int) -> list[str]:
        return [line for line in self.of(broker) if line in EXPIRED]

    @property
    def isr_updates(self) -> list[e.IsrUpdated]:
        return [one for one in self.events if isinstance(one, e.IsrUpdated)]

    @property
    def versions_written(self) -> list[int | None]:
        return [one.version for one in self.logged("setData") if one.path == STATE]

    def logged(self, op: str) -> list[e.ZkTransaction]:
        return [one for one in self.events if isinstance(one, e.ZkTransaction) and one.op == op]

    def actions(self, do: str) -> list[e.ActionApplied]:
        return [one for one in self.events if isinstance(one, e.ActionApplied) and one.do == do]

    def story(self, event: AnyEvent) -> list[str]:
        """The causes of the event, earliest first."""
        by_seq = {one.seq: one for one in self.events}
        kinds: list[str] = []
        cause: AnyEvent | None = event
        while cause is not None:
            kinds.append(cause.do if isinstance(cause, e.ActionApplied) else cause.kind)
            cause = by_seq.get(cause.cause)
        return kinds[::-1]


def _lines(event: AnyEvent) -> Iterator[str]:
    match event:
        case e.ZkSessionState(state=state):
            yield state
        case e.BrokerRegistered():
            yield "registers"
        case e.IsrUpdated(isr=isr, zk_version=version):
            yield f"isr {list(isr)} v{version}"
        case e.IsrUpdateRejected():
            yield "rejected"
        case e.ZkRequest(op="setData" | "getData" as op, path=path) if path == STATE:
            yield op


def _since_the_first_fault(events: list[AnyEvent]) -> list[AnyEvent]:
    faults = (
        n
        for n, one in enumerate(events)
        if isinstance(one, e.ActionApplied) and one.do not in ("up", "create_topic", "produce")
    )
    return events[next(faults) :]


@pytest.fixture(params=[SIMULATED, pytest.param(EMBEDDED, marks=pytest.mark.live)])
def zookeeper(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def played(
    zookeeper: str,
    faults: str,
    *,
    seconds: int = 12,
    time_scale: int = 2,
    again: Callable[[Told], str | None] = lambda _: None,
) -> Told:
    """Play it; once more where `again` names a race that went the other way."""
    scenario = loads(
        "cluster: {first: 1, config: {replica.lag.time.max.ms: 1000,"
        f" replica.fetch.backoff.ms: 200, zookeeper.session.timeout.ms: {SESSION_MS},"
        " zookeeper.connection.timeout.ms: 60000}}\n"
        "topics: {orders: {partitions: [[1, 2, 3]]}}\n"
        "workload: [{produce: orders, rate: 20, acks: 1, from: 1s}]\n"
        f"faults: [{faults}]\nrun: {seconds}s\n",
        "tried",
    )
    for seed in range(PLAYS):
        sink = Sink()
        options = PlayOptions(seed=seed, zookeeper=zookeeper, time_scale=time_scale)
        play(scenario, options, sink)
        told = Told(_since_the_first_fault(sink.events))
        lost = again(told)
        if lost is None:
            return told
        print(f"play {seed}: {lost}")
    raise AssertionError(f"the same race went the other way {PLAYS} times")


# -- sessions --------------------------------------------------------------------------------------


def test_a_session_that_is_ended_is_learnt_on_reconnecting_and_another_is_registered(
    zookeeper: str,
) -> None:
    told = played(zookeeper, "{at: 3s, expire_session: 2}", seconds=8)
    assert told.sessions_of(2) == EXPIRED
    assert told.sessions_of(1) == told.sessions_of(3) == []
    (ended,) = told.logged("closeSession")
    assert ended.removed == ("/brokers/ids/2",)
    assert told.story(ended) == ["expire_session", "zk_transaction"]


def test_a_controller_whose_session_is_ended_has_a_successor_when_it_learns_it(
    zookeeper: str,
) -> None:
    told = played(zookeeper, "{at: 3s, expire_session: 1}", seconds=8)
    assert told.sessions_of(1) == EXPIRED
    (elected,) = (one for one in told.events if isinstance(one, e.ControllerElected))
    (learnt,) = (one for one in told.events if _lines_of(one) == ["Expired"])
    assert elected.broker in (2, 3)
    assert elected.controller_epoch == 2
    assert elected.seq < learnt.seq


def _lines_of(event: AnyEvent) -> list[str]:
    return list(_lines(event))


def test_a_session_is_ended_even_while_its_broker_cannot_be_reached(zookeeper: str) -> None:
    faults = "{at: 3s, cut_zookeeper_link: 2, for: 2s}, {at: 4s, expire_session: 2}"
    told = played(zookeeper, faults, seconds=9)
    assert told.sessions_of(2) == EXPIRED
    (ended,), (healed,) = told.logged("closeSession"), told.actions("heal_zookeeper_link")
    heard = next(one for one in told.events if _lines_of(one) == ["Disconnected"])
    assert ended.seq < healed.seq < heard.seq


# -- connections -----------------------------------------------------------------------------------

FOLLOWER_OUT = "{at: 3s, pause: {broker: 3}, for: 3s}"


@pytest.mark.parametrize(
    ("when", "finds_out"),
    [("before", ["setData"]), ("after", ["setData", "getData"])],
)
def test_an_isr_update_whose_connection_is_lost_is_made_once(
    zookeeper: str, when: str, finds_out: list[str]
) -> None:
    """Lost before: the retry makes it. Lost after: the retry finds another version, and that it is
    its own (checkLeaderAndIsrZkData)."""
    drop = f"{{at: 2s, drop_connection: {{broker: 1, when: {when}, op: setData}}}}"
    told = played(zookeeper, f"{drop}, {FOLLOWER_OUT}")
    shrunk = ["setData", *finds_out, "isr [1, 2] v1"]
    assert told.sessions_of(1) == KEPT
    assert [line for line in told.of(1) if line not in KEPT][: len(shrunk)] == shrunk
    sent = [one.seq for one in told.events if list(_lines(one)) == ["setData"]]
    (made,) = (one for one in told.logged("setData") if one.path == STATE and one.version == 1)
    assert made.cause == sent[when == "before"]
    assert told.versions_written[0] == 1
    assert told.versions_written == sorted(set(told.versions_written))


def test_what_has_not_been_dropped_when_it_is_called_off_is_not(zookeeper: str) -> None:
    drop = "{at: 2s, drop_connection: {broker: 1, when: before, count: 100}, for: 500ms}"
    told = played(zookeeper, f"{drop}, {FOLLOWER_OUT}", seconds=9)
    assert told.of(1)[:2] == ["setData", "isr [1, 2] v1"]
    assert told.sessions_of(1) == []


def test_a_delayed_link_delays_each_way_until_it_is_healed(zookeeper: str) -> None:
    delay = "{at: 2s, delay_link: {broker: 1, peer: zookeeper, delay_ms: 300}, until: 6500ms}"
    out = "{at: 3s, pause: {broker: 3}, for: 4s}"
    told = played(zookeeper, f"{delay}, {out}", seconds=10)
    replies = (one for one in told.events if isinstance(one, e.ZkReply) and one.op == "setData")
    elapsed_us = [one.elapsed_us for one in replies if one.path == STATE]
    assert elapsed_us[0] >= 600_000
    assert elapsed_us[-1] < 500_000


# -- the server ------------------------------------------------------------------------------------


def kept_by_all(told: Told) -> str | None:
    """A client that connects to a server before it has loaded its data gets no response, and loses
    its session: Ensemble.load."""
    lost = [broker for broker in (1, 2, 3) if "Expired" in told.of(broker)]
    return f"{lost} connected before the server had its data" if lost else None


@pytest.mark.slow
def test_sessions_outlive_a_server_that_is_down_for_longer_than_their_time_out(
    zookeeper: str,
) -> None:
    told = played(
        zookeeper,
        "{at: 3s, stop_zookeeper: , for: 8s}, {at: 9s, pause: {broker: 3}, for: 2s}",
        seconds=20,
        time_scale=1,
        again=kept_by_all,
    )
    assert told.sessions_of(2) == told.sessions_of(3) == KEPT
    assert told.logged("closeSession") == []
    (back,) = told.actions("start_zookeeper")
    assert told.sessions_of(1) == KEPT
    assert told.versions_written[0] == 1
    assert told.isr_updates[0].t > back.t, "the shrink waits for the server"


def test_a_stall_that_is_shorter_than_a_read_time_out_is_nobodys_business(zookeeper: str) -> None:
    """Four seconds of silence end a connection. An idle client pings once a second, so the last
    answer may be a second older than the stall."""
    told = played(zookeeper, "{at: 3s, pause: {server: zookeeper}, for: 2s}", seconds=9)
    assert told.sessions_of(1) == told.sessions_of(2) == told.sessions_of(3) == []


def some_expired(told: Told) -> str | None:
    expired = any("Expired" in told.of(broker) for broker in (1, 2, 3))
    return None if expired else "the server read all reconnects before it looked at its sessions"


@pytest.mark.slow
def test_after_a_stall_beyond_the_time_out_sessions_are_over_or_were_read_just_in_time(
    zookeeper: str,
) -> None:
    told = played(
        zookeeper, "{at: 3s, pause: {server: zookeeper}, for: 9s}", seconds=20, again=some_expired
    )
    fates = [KEPT, EXPIRED] if zookeeper == SIMULATED else [KEPT, EXPIRED, OVERTAKEN]
    for broker in (1, 2, 3):
        assert told.sessions_of(broker) in fates
    ended = {one.broker for one in told.logged("closeSession")}
    assert ended == {broker for broker in (1, 2, 3) if told.sessions_of(broker) != KEPT}
    (resumed,) = told.actions("resume")
    assert all(one.t >= resumed.t for one in told.logged("closeSession"))
