"""The effects of network faults on a cluster, and the recovery; above all Kafka's handling of
requests that may have arrived and may arrive twice (spec §6.10, hazards §0)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from emulator.invariants.base import check
from emulator.invariants.known.base import recognise
from emulator.runs.play import PlayOptions, play
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.sink import Sink

Events = list[AnyEvent]
MORE = "create_topic: {topic: bills, assignment: [[2, 3, 1]]}"
BILLS = "create_topic: {topic: bills, assignment: [[1, 3, 2]]}"


def played(
    faults: str,
    *,
    seconds: int = 12,
    config: str = "",
    acks: str = "all",
    seed: int = 1,
    whole: bool = False,
) -> Events:
    """The trace, whole or from the first fault on; broker 1 is controller and leads orders-0."""
    scenario = loads(
        f"cluster: {{first: 1, config: {{replica.lag.time.max.ms: 2000{config}}}}}\n"
        "topics: {orders: {partitions: [[1, 2, 3]]}}\n"
        f"workload: [{{produce: orders, rate: 20, acks: {acks}, from: 1s}}]\n"
        f"faults: [{faults}]\nrun: {seconds}s\n",
        "tried",
    )
    sink = Sink()
    play(scenario, PlayOptions(seed=seed), sink)
    first = next(step for step in scenario.steps if step.fault)
    begun = next(
        n
        for n, one in enumerate(sink.events)
        if isinstance(one, e.ActionApplied) and one.do == first.action.name
    )
    return sink.events[0 if whole else begun :]


def sent_to(broker: int, events: Events, request: str) -> list[int]:
    """Attempts of the controller's requests of this kind."""
    return [
        one.attempt
        for one in events
        if isinstance(one, e.ControlRequestSent) and (one.to, one.request) == (broker, request)
    ]


def told_about(topic: str, broker: int, events: Events) -> list[str]:
    """How a broker obeyed the controller's LeaderAndIsr about a topic."""
    return [line for one in events if one.broker == broker for line in _obeying(one, topic)]


def _obeying(event: AnyEvent, topic: str) -> Iterator[str]:
    match event:
        case e.LeaderAndIsr(state=state) if state.partition.topic == topic:
            yield "told"
        case e.LeaderAndIsrIgnored(state=state, error=error) if state.partition.topic == topic:
            yield f"ignored: {error}"
        case e.BecomesFollower(partition=partition) if partition.topic == topic:
            yield "follows"


def isrs(events: Events) -> list[tuple[int, ...]]:
    return [one.isr for one in events if isinstance(one, e.IsrUpdated)]


def at(events: Events, do: str) -> int:
    return next(one.t for one in events if isinstance(one, e.ActionApplied) and one.do == do)


# -- requests that may have arrived ----------------------------------------------------------------

OBEYED = ["told", "follows"]
OBEYED_ONCE = [*OBEYED, "told", "ignored: STALE_CONTROLLER_EPOCH"]


def broken(when: str, request: str, late_ms: int = 0) -> str:
    fault = f"broker: 1, peer: 3, when: {when}, request: {request}, late_ms: {late_ms}"
    return f"{{at: 3s, break_connection: {{{fault}}}}}"


def test_a_request_that_never_arrived_is_sent_again() -> None:
    events = played(f"{broken('before', 'LeaderAndIsr')}, {{at: 4s, {MORE}}}")
    assert sent_to(3, events, "LeaderAndIsr") == [1, 2]
    assert sent_to(2, events, "LeaderAndIsr") == [1]
    assert told_about("bills", 3, events) == OBEYED


def test_a_request_whose_answer_was_lost_comes_twice_and_is_obeyed_once() -> None:
    events = played(f"{broken('after', 'LeaderAndIsr')}, {{at: 4s, {MORE}}}")
    assert sent_to(3, events, "LeaderAndIsr") == [1, 2]
    assert told_about("bills", 3, events) == OBEYED_ONCE


def test_a_copy_that_comes_late_finds_that_the_second_one_was_obeyed() -> None:
    events = played(f"{broken('after', 'LeaderAndIsr', 2000)}, {{at: 4s, {MORE}}}")
    sent = {
        one.seq: one.attempt
        for one in events
        if isinstance(one, e.ControlRequestSent) and (one.to, one.request) == (3, "LeaderAndIsr")
    }
    came = [one.cause for one in events if isinstance(one, e.LeaderAndIsr) and one.broker == 3]
    assert [sent[seq] for seq in came] == [2, 1]
    assert told_about("bills", 3, events) == OBEYED_ONCE


def test_a_late_copy_of_an_update_metadata_takes_a_broker_back() -> None:
    """UpdateMetadata is guarded by the controller's epoch alone: nothing says that one is old."""
    out = "{at: 5s, pause: {broker: 2}, for: 4s}"
    late = broken("after", "UpdateMetadata", 25_000)
    records = "{at: 4500ms, produce: {topic: bills, partitions: [0], rate: 20}}"
    events = played(f"{late}, {{at: 4s, {BILLS}}}, {records}, {out}", seconds=31, whole=True)
    shown = [
        state.zk_version
        for one in events
        if isinstance(one, e.MetadataCacheUpdated) and one.broker == 3
        for state in one.states
        if state.partition.topic == "bills"
    ]
    assert shown[0] == 0
    assert shown[-2] > 0
    assert shown[-1] == 0
    assert known_hazards(events) == {"late UpdateMetadata"}


def known_hazards(events: Events) -> set[str]:
    """The known hazards behind the violated invariants of these events; an empty name: our bug."""
    return {recognise(violation, events) for violation in check(events)}


def test_a_request_that_is_not_answered_in_time_goes_out_anew_and_both_copies_arrive() -> None:
    """The first waits on the link, the second on a connection that cannot be made (each attempt
    is given up after controller.socket.timeout.ms)."""
    cut = "{at: 3s, cut_link: {broker: 1, peer: 3, ways: to_peer}, for: 6s}"
    config = ", request.timeout.ms: 2000, controller.socket.timeout.ms: 1000"
    events = played(f"{cut}, {{at: 4s, {MORE}}}", config=config)
    assert sent_to(3, events, "LeaderAndIsr") == [1, 4]
    told = told_about("bills", 3, events)
    assert (sorted(told), told[-1]) == (sorted(OBEYED_ONCE), OBEYED_ONCE[-1])
    obeyed = next(one for one in events if isinstance(one, e.BecomesFollower) and one.broker == 3)
    assert obeyed.t > at(events, "heal_link")


def test_a_fetch_whose_connection_breaks_is_tried_again_with_a_new_session() -> None:
    broke = (
        "{at: 3s, break_connection: {broker: 2, peer: 1, when: after, request: Fetch, count: 2}}"
    )
    events = played(broke, seconds=8)
    anew = [one for one in events if isinstance(one, e.FetchSent) and one.broker == 2]
    assert sum(one.session_epoch == 0 for one in anew) == 2
    backed_off = [b.t - a.t for a, b in pairwise(anew) if b.session_epoch == 0]
    assert min(backed_off) >= 1_000_000, "replica.fetch.backoff.ms"


# -- links -----------------------------------------------------------------------------------------

ALL, WITHOUT_2 = [1, 2, 3], (1, 3)


def test_a_follower_whose_fetches_do_not_arrive_is_out_until_they_do() -> None:
    for ways in ("to_peer", "from_peer"):
        cut = f"{{at: 3s, cut_link: {{broker: 2, peer: 1, ways: {ways}}}, for: 6s}}"
        events = played(cut, seconds=14)
        first, last = isrs(events)[0], isrs(events)[-1]
        assert (first, sorted(last)) == (WITHOUT_2, ALL)


def test_a_link_that_takes_its_time_slows_fetches_until_it_is_healed() -> None:
    slow = "link_latency: {broker: 2, peer: 1, low_ms: 100, typical_ms: 150, high_ms: 400}"
    events = played(f"{{at: 3s, {slow}, for: 5s}}", seconds=12)
    healed = events[0].t + 5_000_000
    fetches = [one.t for one in events if isinstance(one, e.FetchSent) and one.broker == 2]
    gaps = [(t, following - t) for t, following in pairwise(fetches)]
    during = [gap for t, gap in gaps if events[0].t + 500_000 < t < healed - 500_000]
    after = [gap for t, gap in gaps if t > healed + 500_000]
    assert min(during) >= 200_000
    assert min(after) < 100_000


def test_a_lossy_link_costs_a_follower_its_place_and_no_record() -> None:
    lossy = "{at: 3s, lossy_link: {broker: 2, peer: 1, loss: 0.7}, for: 15s}"
    events = played(lossy, seconds=30)
    assert WITHOUT_2 in isrs(events)
    assert sorted(isrs(events)[-1]) == ALL
    appended = [
        (one.broker, one.base_offset)
        for one in events
        if isinstance(one, e.RecordsAppended) and one.broker == 2
    ]
    assert appended == sorted(set(appended)), "each record came once, in order"


def test_a_narrow_link_lets_a_follower_fall_behind_until_it_is_healed() -> None:
    slow = "{at: 3s, slow_link: {broker: 1, peer: 2, bytes_per_s: 1000}, for: 6s}"
    events = played(slow, seconds=22, acks="1")
    assert isrs(events)[0] == WITHOUT_2
    assert sorted(isrs(events)[-1]) == ALL
    assert any(
        isinstance(one, e.FetchSent) and one.broker == 2 and one.t < events[0].t + 7_000_000
        for one in events
    ), "it never stopped fetching"


def test_a_broker_that_is_unplugged_leaves_every_isr_and_returns_when_it_is_plugged_in() -> None:
    """All of its links at once, including ZooKeeper: its session ends, too."""
    events = played("{at: 3s, unplug: {broker: 2}, for: 12s}", seconds=30)
    isrs = [sorted(one.isr) for one in events if isinstance(one, e.IsrUpdated)]
    assert isrs == [[1, 3], [1, 2, 3]]
    ended = [one.broker for one in events if isinstance(one, e.BrokerRegistered)]
    assert ended == [] or set(ended) == {2}
