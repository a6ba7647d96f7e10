"""Connections: requests and answers in order, one served at a time, cut, healed, broken, narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch
from emulator.kafka.protocol.messages import (
    FetchedPartition,
    FetchResponse,
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
)
from emulator.kafka.protocol.transport import Disconnected, ServerConnection
from emulator.kernel.rng import Stream
from emulator.kernel.scheduler import Kernel, TaskFailed
from emulator.trace.sink import Sink
from emulator.worlds.network.links import LinkConditions
from emulator.worlds.network.memory import Break, Listener, MemoryConnection, MemoryNetwork
from tests.interaction.hosting import ORDERS_0

PORT = 9092
WAY_US = {
    "net_connect": 500,
    "net_request": 1000,
    "net_produce": 2000,
    "net_response": 1000,
    "net_delayed_response": 1000,
    "next_request": 3000,
}


class TwoEnds:
    """A client and a broker; every request takes a millisecond, every answer another one."""

    def __init__(self, network_threads: int = 1) -> None:
        self.kernel = Kernel(Sink())
        self.ways = dict(WAY_US)
        self.network = MemoryNetwork(self.kernel, lambda purpose, actor: self.ways[purpose])
        self.client, self.broker = self.kernel.process("client"), self.kernel.process("broker")
        self.received: list[tuple[str, ServerConnection]] = []
        self.answers_at_once = True
        self.heard: list[str] = []
        self.listener = Listener(self.broker, network_threads, self._receive)
        self.network.listen(PORT, self.listener)
        self.connection = self.connect()

    def __enter__(self) -> TwoEnds:
        return self

    def __exit__(self, *error: object) -> None:
        self.kernel.close()

    def _receive(self, request: Any, connection: ServerConnection) -> None:
        (name,) = request.topics
        self.say(f"read {name}")
        self.received.append((name, connection))
        if self.answers_at_once:
            connection.respond(f"answer {name}")

    def say(self, what: str) -> None:
        self.heard.append(f"{self.kernel.now // 1000} {what}")

    def connect(self, timeout_ms: int = 1000) -> MemoryConnection:
        found: list[MemoryConnection] = []

        async def open_it() -> None:
            found.append(await self.network.connect("client", "host", PORT, timeout_ms))

        self.client.spawn("connector", open_it())
        self.run_ms(1)
        return found[0] if found else self.connection

    def ask(self, name: str, timeout_ms: int = 1000) -> None:
        async def ask_it() -> None:
            try:
                self.say(await self.connection.send(MetadataRequest((name,)), timeout_ms))
            except Disconnected:
                self.say(f"{name} broke")

        self.client.spawn(f"asks {name}", ask_it())

    def cut(self) -> None:
        """Both ways."""
        self.network.cut("broker", "client")
        self.network.cut("client", "broker")

    def run_ms(self, duration_ms: int) -> list[str]:
        self.kernel.run(self.kernel.now + duration_ms * 1000)
        heard, self.heard = self.heard, []
        return heard


def test_a_request_and_its_answer_take_their_ways() -> None:
    with TwoEnds() as ends:
        ends.ask("a")
        assert ends.run_ms(10) == ["2 read a", "3 answer a"]


def test_one_request_of_a_connection_is_served_at_a_time() -> None:
    with TwoEnds() as ends:
        ends.answers_at_once = False
        ends.ask("a")
        ends.ask("b")
        assert ends.run_ms(10) == ["2 read a"]
        ends.received[0][1].respond("answer a")
        assert ends.run_ms(10) == ["12 answer a", "14 read b"]


def test_the_next_request_is_read_after_the_answer_to_the_last_one_was_written() -> None:
    """So the second answer comes later although both requests arrived together. librdkafka's scan
    and refresh query metadata at the same time."""
    with TwoEnds() as ends:
        ends.ask("a")
        ends.ask("b")
        assert ends.run_ms(10) == ["2 read a", "2 read b", "3 answer a", "6 answer b"]


def test_a_producers_requests_wait_for_one_another_at_the_broker() -> None:
    """It works on one request of a connection at a time. Those of another producer do not wait."""
    with TwoEnds() as ends:
        written: list[tuple[str, int]] = []
        names = {ends.connection: "first", ends.connect(): "second"}
        began_us = ends.kernel.now

        def write(request: Any, connection: ServerConnection) -> None:
            written.append((names[connection], ends.kernel.now - began_us))
            connection.respond("written")

        ends.listener.receive = write
        records = ProduceRequest(1, 1000, (ProducePartition(ORDERS_0, 1, 100),))
        for connection in names:
            connection.submit(records, lambda answer: None)
            connection.submit(records, lambda answer: None)
        ends.run_ms(10)
        assert written == [("first", 2000), ("second", 2000), ("first", 4000), ("second", 4000)]


def test_work_on_records_begins_when_the_request_before_has_its_answer() -> None:
    """With acks=all that answer waits for the followers."""
    with TwoEnds() as ends:
        read: list[ServerConnection] = []
        read_us: list[int] = []

        def read_it(request: Any, connection: ServerConnection) -> None:
            read.append(connection)
            read_us.append(ends.kernel.now)

        ends.listener.receive = read_it
        records = ProduceRequest(-1, 1000, (ProducePartition(ORDERS_0, 1, 100),))
        ends.connection.submit(records, lambda answer: None)
        ends.connection.submit(records, lambda answer: None)
        ends.run_ms(50)
        answered_us = ends.kernel.now
        read[0].respond("written")
        ends.run_ms(10)
        assert read_us[1] == answered_us + 2000


def test_an_answer_that_its_request_waited_for_wakes_threads_at_both_ends() -> None:
    """A fetch that waits in a purgatory, or acks=all."""
    with TwoEnds() as ends:
        ends.ways["net_delayed_response"] = 5000
        ends.answers_at_once = False
        ends.ask("a")
        assert ends.run_ms(10) == ["2 read a"]
        ends.received[0][1].respond("answer a")
        assert ends.run_ms(10) == ["16 answer a"]


def test_connections_do_not_wait_for_each_other() -> None:
    with TwoEnds() as ends:
        ends.answers_at_once = False
        ends.ask("a")
        ends.run_ms(5)
        ends.connection = ends.connect()
        ends.ask("b")
        assert ends.run_ms(5) == ["8 read b"]


def test_bytes_never_overtake_each_other() -> None:
    with TwoEnds() as ends:
        ends.ways["net_request"] = 5000
        ends.ask("slow")
        ends.kernel.run(ends.kernel.now)
        ends.ways["net_request"] = 10
        ends.ask("quick")
        assert [line.split(" ", 1)[1] for line in ends.run_ms(20)] == [
            "read slow",
            "read quick",
            "answer slow",
            "answer quick",
        ]


def test_a_paused_broker_leaves_requests_in_its_sockets() -> None:
    with TwoEnds() as ends:
        ends.broker.pause()
        ends.ask("a")
        assert ends.run_ms(50) == []
        ends.broker.resume()
        assert ends.run_ms(10) == ["51 read a", "52 answer a"]


@pytest.mark.parametrize(("drops", "reads"), [(False, ["51 read a"]), (True, [])])
def test_a_paused_broker_of_0_9_reads_a_request_and_the_end_behind_it_and_drops_both(
    drops: bool, reads: list[str]
) -> None:
    """KAFKA-3703."""
    with TwoEnds() as ends:
        ends.listener.drops_at_end = drops
        ends.broker.pause()
        ends.ask("a")
        assert ends.run_ms(50) == []
        ends.connection.close()
        ends.broker.resume()
        assert ends.run_ms(10) == ["51 a broke", *reads]


def test_a_request_that_arrives_before_the_end_of_its_connection_is_read_by_any_broker() -> None:
    with TwoEnds() as ends:
        ends.listener.drops_at_end = True
        ends.ask("a")
        ends.kernel.run(ends.kernel.now + 500)
        ends.connection.close()
        assert "2 read a" in ends.run_ms(10)


def test_no_answer_in_time_breaks_the_connection_but_the_broker_may_still_serve_it() -> None:
    with TwoEnds() as ends:
        ends.broker.pause()
        ends.ask("a", timeout_ms=20)
        assert ends.run_ms(30) == ["21 a broke"]
        assert not ends.connection.open
        ends.broker.resume()
        assert ends.run_ms(10) == ["31 read a"]


def test_a_closed_connection_fails_what_is_in_flight_and_what_comes_after() -> None:
    with TwoEnds() as ends:
        ends.answers_at_once = False
        ends.ask("a")
        ends.run_ms(5)
        ends.connection.close()
        ends.ask("b")
        assert sorted(ends.run_ms(5)) == ["6 a broke", "6 b broke"]


def test_when_a_process_dies_the_other_end_learns_it_and_nobody_can_connect_any_more() -> None:
    with TwoEnds() as ends:
        ends.answers_at_once = False
        ends.ask("a")
        ends.run_ms(5)
        ends.broker.crash()
        ends.network.process_died(ends.broker)
        assert ends.run_ms(5) == ["6 a broke"]
        refused: list[str] = []

        async def tries() -> None:
            try:
                await ends.network.connect("client", "host", PORT, 1000)
            except Disconnected as error:
                refused.append(str(error))

        ends.client.spawn("tries", tries())
        ends.run_ms(5)
        assert refused == [f"connection to port {PORT} refused"]


def test_while_a_link_is_cut_bytes_wait_and_healed_they_come_in_order() -> None:
    with TwoEnds() as ends:
        ends.cut()
        ends.ask("a")
        ends.ask("b")
        assert ends.run_ms(100) == []
        ends.network.heal("client", "broker")
        heard = ends.run_ms(10)
        assert [line.split(" ", 1)[1] for line in heard] == [
            "read a",
            "read b",
            "answer a",
            "answer b",
        ]


def test_answers_wait_too() -> None:
    with TwoEnds() as ends:
        ends.answers_at_once = False
        ends.ask("a")
        ends.run_ms(5)
        ends.cut()
        ends.received[0][1].respond("answer a")
        assert ends.run_ms(50) == []
        ends.network.heal("broker", "client")
        assert ends.run_ms(5) == ["57 answer a"]


def test_connecting_over_a_cut_link_waits_and_gives_up_in_time() -> None:
    with TwoEnds() as ends:
        ends.cut()
        outcomes: list[str] = []

        def attempt(timeout_ms: int) -> None:
            async def tries() -> None:
                try:
                    await ends.network.connect("client", "host", PORT, timeout_ms)
                    outcomes.append(f"open at {ends.kernel.now // 1000}")
                except Disconnected:
                    outcomes.append(f"given up at {ends.kernel.now // 1000}")

            ends.client.spawn(f"tries {timeout_ms}", tries())

        attempt(20)
        attempt(200)
        ends.run_ms(100)
        ends.network.heal("broker", "client")
        ends.run_ms(5)
        assert outcomes == ["given up at 21", "open at 101"]


def test_a_delay_is_added_each_way() -> None:
    with TwoEnds() as ends:
        ends.network.delay("broker", "client", 20_000)
        ends.ask("a")
        assert ends.run_ms(60) == ["22 read a", "43 answer a"]
        ends.network.delay("broker", "client", 0)
        ends.ask("b")
        assert ends.run_ms(10) == ["62 read b", "63 answer b"]


def records(size: int) -> FetchResponse:
    batch = Batch(0, 1, size, 0)
    return FetchResponse(Errors.NONE, 0, (FetchedPartition(ORDERS_0, Errors.NONE, 0, 0, (batch,)),))


def answered_at(ends: TwoEnds, *sizes: int) -> list[int]:
    """When answers of these sizes, given at the same moment, are there (milliseconds)."""
    ends.answers_at_once = False
    times: list[int] = []
    done: Callable[[Any], None] = lambda _: times.append(ends.kernel.now // 1000)  # noqa: E731
    for number, _ in enumerate(sizes):
        ends.connection.submit(MetadataRequest((str(number),)), done)
    for number, size in enumerate(sizes):
        ends.run_ms(10)
        ends.received[number][1].respond(records(size))
    ends.run_ms(10_000)
    return times


def test_over_a_narrow_way_records_take_their_time_one_answer_after_the_other() -> None:
    with TwoEnds() as ends:
        ends.network.limit_bandwidth("client", 10_000)
        assert answered_at(ends, 1000, 2000) == [112, 312]


def test_a_way_into_another_process_is_not_narrow() -> None:
    with TwoEnds() as ends:
        ends.network.limit_bandwidth("broker", 10)
        assert answered_at(ends, 1000) == [12]


def test_connections_are_given_to_network_threads_in_turn() -> None:
    with TwoEnds(network_threads=2) as ends:
        lanes = [ends.connect()._lane.thread for _ in range(3)]
        assert lanes[0] != lanes[1]
        assert lanes[0] == lanes[2]


@pytest.mark.parametrize("alive", [True, False])
def test_open_connections_can_be_counted(alive: bool) -> None:
    with TwoEnds() as ends:
        if not alive:
            ends.connection.close()
        assert ends.network.connections_of(ends.broker) == int(alive)


def test_a_broker_that_stops_listening_breaks_what_it_accepted_and_refuses_the_rest() -> None:
    with TwoEnds() as ends:
        ends.answers_at_once = False
        ends.ask("a")
        ends.run_ms(5)
        ends.network.stop_listening(PORT)
        assert ends.run_ms(1) == ["6 a broke"]
        assert not ends.connection.open
        with pytest.raises(TaskFailed, match="refused"):
            ends.connect()


# -- one way ---------------------------------------------------------------------------------------


def test_a_cut_of_one_way_holds_requests_while_answers_pass() -> None:
    with TwoEnds() as ends:
        ends.answers_at_once = False
        ends.ask("a")
        ends.run_ms(5)
        ends.network.cut("client", "broker")
        ends.ask("b")
        ends.received[0][1].respond("answer a")
        assert ends.run_ms(50) == ["7 answer a"]
        ends.network.heal("client", "broker")
        assert ends.run_ms(5) == ["57 read b"]


def test_over_a_link_that_is_cut_one_way_no_connection_is_made() -> None:
    with TwoEnds() as ends:
        ends.network.cut("broker", "client")
        before, ends.connection = ends.connection, ends.connect(timeout_ms=20)
        assert ends.connection is before
        ends.network.heal("broker", "client")


# -- chance ----------------------------------------------------------------------------------------


def disturbed(ends: TwoEnds, conditions: LinkConditions, seed: int = 1) -> None:
    """The way from the client to the broker behaves like this."""
    stream = Stream(seed)
    ends.network.direction("client", "broker").behave(conditions, lambda: stream)


def test_what_is_lost_comes_later_and_what_is_behind_it_waits() -> None:
    """Sent again after 200 ms, 400 ms more, 800 ms more; nothing is lost, doubled or disordered."""
    with TwoEnds() as ends:
        disturbed(ends, LinkConditions(loss=0.5))
        for number in range(20):
            ends.ask(f"{number:02}", timeout_ms=10_000_000)
        heard = [line.split() for line in ends.run_ms(1_000_000) if "read" in line]
        assert [name for _, _, name in heard] == [f"{number:02}" for number in range(20)]
        came = [int(at) for at, _, _ in heard]
        assert came == sorted(came)
        assert {at - 2 for at in came} <= {200 * (2**lost - 1) for lost in range(10)}
        assert came[-1] > 200


def test_messages_of_two_connections_overtake_each_other() -> None:
    with TwoEnds() as ends:
        connections = [ends.connection, ends.connect()]
        disturbed(ends, LinkConditions(1000, 20_000, 100_000))
        orders = set()
        for _ in range(20):
            for name, connection in zip(("first", "then"), connections, strict=True):
                ends.connection = connection
                ends.ask(name)
                ends.run_ms(0)
            orders.add(tuple(line.split()[2] for line in ends.run_ms(1000) if "read" in line))
        assert orders == {("first", "then"), ("then", "first")}


@given(st.integers(0, 50_000), st.integers(0, 50_000), st.integers(1, 50_000), st.integers(0))
def test_drawn_times_keep_to_their_bounds(low: int, more: int, most: int, seed: int) -> None:
    conditions = LinkConditions(low, low + more, low + more + most)
    stream = Stream(seed)
    drawn = sorted(conditions.drawn_us(stream) for _ in range(200))
    assert low <= drawn[0]
    assert drawn[-1] <= low + more + most
    below = sum(us < low + more for us in drawn)
    assert below <= 150, "half of them take longer than the typical time"


def test_over_a_narrow_link_everything_takes_its_turn() -> None:
    with TwoEnds() as ends:
        ends.network.direction("broker", "client").narrow(10_000)
        assert answered_at(ends, 1000 - 72, 2000 - 72) == [112, 312]
        ends.network.direction("broker", "client").narrow(0)


def test_over_a_narrow_link_no_connection_waits_for_another() -> None:
    """As the proxies between recorded brokers limit it: a follower's fetches pass beside records
    that go the same way (random script 157)."""
    with TwoEnds() as ends:
        ends.network.direction("broker", "client").narrow(10_000)
        ends.answers_at_once = False
        for name in ("many", "few"):
            ends.ask(name, timeout_ms=20_000)
            ends.connection = ends.connect()
        ends.run_ms(10)
        for (_, connection), size in zip(ends.received, (90_000, 1000 - 72), strict=True):
            connection.respond(records(size))
        assert [line.split()[0] for line in ends.run_ms(20_000)] == ["114", "9021"]


# -- connections that break ------------------------------------------------------------------------


def broken_at(ends: TwoEnds, how: Break, count: int = 1) -> None:
    ends.network.break_connections("client", "broker", how, count)


def test_a_connection_that_breaks_before_a_request_arrives() -> None:
    with TwoEnds() as ends:
        broken_at(ends, Break("before"))
        ends.ask("a")
        assert ends.run_ms(10) == ["1 a broke"]
        assert not ends.connection.open
        ends.connection = ends.connect()
        ends.ask("a")
        assert [line.split(" ", 1)[1] for line in ends.run_ms(10)] == ["read a", "answer a"]


def test_a_connection_that_breaks_after_a_request_was_served() -> None:
    with TwoEnds() as ends:
        broken_at(ends, Break("after"))
        ends.ask("a")
        assert ends.run_ms(10) == ["2 read a", "2 a broke"]


def test_a_request_that_comes_late_may_come_after_its_second_copy() -> None:
    with TwoEnds() as ends:
        broken_at(ends, Break("after", late_us=20_000))
        ends.ask("a")
        assert ends.run_ms(1) == ["1 a broke"]
        ends.connection = ends.connect()
        ends.ask("a again")
        heard = [line.split(" ", 1)[1] for line in ends.run_ms(30)]
        assert heard == ["read a again", "answer a again", "read a"]


def test_only_requests_of_a_kind_and_as_often_as_ordered() -> None:
    with TwoEnds() as ends:
        broken_at(ends, Break("before", "LeaderAndIsr"))
        broken_at(ends, Break("before", "Metadata"), count=5)
        ends.ask("a")
        assert ends.run_ms(5) == ["1 a broke"]
        broken_at(ends, Break("before"), count=0)
        ends.connection = ends.connect()
        ends.ask("b")
        assert ends.run_ms(10)[-1].endswith("answer b")
