"""Kafka's protocol on a socket: valid clients are served, others are closed with a reason, without
any effect on the rest."""

import errno
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import (
    MetadataRequest,
    MetadataResponse,
    ProducePartition,
    ProduceRequest,
    Request,
)
from emulator.kafka.protocol.transport import Disconnected, ServerConnection
from emulator.trace.sink import Sink
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.blocking_client import Unreachable, send_request
from emulator.worlds.live_clock import LiveClock, LiveKernel
from emulator.worlds.network.cause_links import CausalityLog
from emulator.worlds.network.memory import Listener
from emulator.worlds.network.tcp import TcpNetwork
from emulator.worlds.wire.frames import request_frame
from emulator.worlds.wire.records import filled

ANSWER = MetadataResponse((), 7, (), 9)


class Served:
    """A kernel on a thread of its own, with one listener that answers Metadata."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.asked: list[Request] = []
        self.answers, self.has_asked = True, threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(10)

    def _run(self) -> None:
        self.clock = LiveClock()
        self.kernel = LiveKernel(Sink(), self.clock)
        links = CausalityLog(None, lambda: 0)
        self.network = TcpNetwork(
            self.kernel, self.clock, profiles()["2.6"], links, self.reasons.append
        )
        self.invalid_requests = 0
        self.network.on_invalid_request = self._count_invalid_request
        process = self.kernel.process("broker-1")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        listener = Listener(process, 2, self._receive)
        self.network.listen("127.0.0.1", self.port, self.port, listener)
        self._ready.set()
        self.kernel.run()

    def _count_invalid_request(self) -> None:
        self.invalid_requests += 1

    def _receive(self, request: Request, connection: ServerConnection) -> None:
        self.asked.append(request)
        self.has_asked.set()
        if isinstance(request, ProduceRequest):
            connection.hang_up()
        elif self.answers:
            connection.respond(ANSWER)

    def on_kernel(self, body: Any) -> Any:
        """The result of a coroutine, run as a thread of the kernel."""
        done, found = threading.Event(), []

        async def run() -> None:
            try:
                found.append(await body(self.network))
            except Disconnected as error:
                found.append(error)
            done.set()

        self.clock.put(lambda: self.kernel.process("client").spawn("client", run()) and None)
        assert done.wait(10)
        return found[0]

    def close(self) -> None:
        self.clock.put(self.kernel.stop)
        self._thread.join()
        self.network.close()
        self.kernel.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served()
    yield server
    server.close()


def asks(served: Served) -> object:
    return send_request(("127.0.0.1", served.port), MetadataRequest(), 10)


def rest_of(served: Served, data: bytes) -> bytes:
    """Everything received until the connection ends, when nothing more is sent."""
    with socket.create_connection(("127.0.0.1", served.port), 10) as stranger:
        received = b""
        try:
            stranger.sendall(data)
            stranger.shutdown(socket.SHUT_WR)
            while more := stranger.recv(1 << 16):
                received += more
        except ConnectionError:
            pass
    return received


def test_who_asks_is_answered(served: Served) -> None:
    assert asks(served) == ANSWER


FRAME = request_frame(MetadataRequest(), 9, 1, "c")
HOSTILE = st.one_of(
    st.binary(max_size=64),
    st.integers(0, len(FRAME) - 1).map(lambda n: FRAME[:n]),
    st.integers(-(1 << 31), (1 << 31) - 1).map(lambda n: struct.pack(">i", n) + FRAME[4:]),
    st.binary(max_size=64).map(lambda b: struct.pack(">i", len(b)) + b),
    st.tuples(st.integers(4, len(FRAME) - 1), st.integers(0, 255)).map(
        lambda at: FRAME[: at[0]] + bytes([at[1]]) + FRAME[at[0] + 1 :]
    ),
)


@settings(max_examples=60, deadline=None)
@given(data=HOSTILE)
def test_whatever_a_stranger_sends_the_others_are_served(served: Served, data: bytes) -> None:
    """Random bytes, cut frames, any length up to 2 GB, one byte wrong."""
    rest_of(served, data)
    assert asks(served) == ANSWER


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (b"\0\0\0\2\0\0", "a request of 2 bytes"),
        (b"\0\0\0\x0a\x03\xe7\0\0\0\0\0\1\xff\xff", "API 999"),
        (b"GET / HTTP/1.1\r\n\r\n", "a frame of 1195725856 bytes"),
    ],
)
def test_a_stranger_is_closed_with_a_reason(served: Served, data: bytes, why: str) -> None:
    before = len(served.reasons)
    assert rest_of(served, data) == b""
    asks(served)
    assert any(why in reason for reason in served.reasons[before:])


def test_an_array_of_2_gb_is_cut_short_before_anything_is_kept_for_it(served: Served) -> None:
    """Metadata version 1, of 2,147,483,647 topics; the frame has none of them."""
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0x7FFFFFFF)
    before = len(served.reasons)
    assert rest_of(served, struct.pack(">i", len(body)) + body) == b""
    assert asks(served) == ANSWER
    assert len(served.reasons) == before + 1


@pytest.mark.parametrize(
    "forged",
    [
        "0005 0000 00000001 0001 63 00000001 40000000 00 ffffffb3",  # StopReplica, -77 partitions
        "0003 0001 00000001 0001 63 00000000 00",  # Metadata, and a byte behind it
    ],
)
def test_an_invalid_request_changes_nothing_and_is_counted_and_said(
    served: Served, forged: str
) -> None:
    body = bytes.fromhex(forged.replace(" ", ""))
    asked, reasons, count = len(served.asked), len(served.reasons), served.invalid_requests
    assert rest_of(served, struct.pack(">i", len(body)) + body) == b""
    assert asks(served) == ANSWER
    assert [type(one) for one in served.asked[asked:]] == [MetadataRequest]
    assert len(served.reasons) == reasons + 1
    assert served.reasons[-1].startswith("connection from 127.0.0.1:")
    assert served.invalid_requests == count + 1


def test_a_produce_with_acks_0_that_fails_closes_its_connection(served: Served) -> None:
    """Requests sent after it are not served."""
    data = filled(1, 100, 0)
    wanted = ProducePartition(TopicPartition("t", 0), 1, len(data), data)
    produce = request_frame(ProduceRequest(0, 1000, (wanted,)), 8, 1, "c")
    asked = len(served.asked)
    assert rest_of(served, produce + FRAME) == b""
    assert asks(served) == ANSWER
    assert [type(one) for one in served.asked[asked:]] == [ProduceRequest, MetadataRequest]
    assert served.reasons[-1] == "connection of c closed: a Produce with acks 0 failed"


def test_requests_of_one_connection_are_served_one_after_the_other(served: Served) -> None:
    """All three were sent at once; the answers come in order."""
    frames = b"".join(request_frame(MetadataRequest(), 9, n, "c") for n in (5, 6, 7))
    received, numbers = rest_of(served, frames), []
    while received:
        (length,) = struct.unpack(">i", received[:4])
        numbers.append(struct.unpack(">i", received[4:8])[0])
        received = received[4 + length :]
    assert numbers == [5, 6, 7]


def test_a_broker_asks_another(served: Served) -> None:
    async def body(network: TcpNetwork) -> object:
        connection = await network.connect("c", "127.0.0.1", served.port, 1000)
        return [await connection.send(MetadataRequest((name,)), 1000) for name in ("a", "b")]

    assert served.on_kernel(body) == [ANSWER, ANSWER]
    assert served.asked[-2:] == [MetadataRequest(("a",)), MetadataRequest(("b",))]


def test_who_is_not_there_is_disconnected(served: Served) -> None:
    async def body(network: TcpNetwork) -> object:
        return await network.connect("c", "127.0.0.1", 1, 1000)

    assert isinstance(served.on_kernel(body), Disconnected)
    with pytest.raises(Unreachable):
        send_request(("127.0.0.1", 1), MetadataRequest(), 1)


def test_an_answer_that_does_not_come_in_time_closes_the_connection(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:

        async def body(network: TcpNetwork) -> object:
            port = silent.getsockname()[1]
            connection = await network.connect("c", "127.0.0.1", port, 1000)
            return await connection.send(MetadataRequest(), 20)

        assert isinstance(served.on_kernel(body), Disconnected)


WITHOUT_DESCRIPTORS = """
import os, resource
from emulator.kafka.profiles.base import profiles
from emulator.trace.sink import Sink
from emulator.worlds.live_clock import LiveClock, LiveKernel
from emulator.worlds.network.cause_links import CausalityLog
from emulator.worlds.network.tcp import TcpNetwork
from emulator.worlds.wire.api import SENT_BY_BROKERS, apis, version_sent
from emulator.worlds.wire.entities import request_schema, response_schema

clock = LiveClock()
for profile in profiles().values():
    network = TcpNetwork(
        LiveKernel(Sink(), clock), clock, profile, CausalityLog(None, lambda: 0), print
    )
    network.load_schemas()
    if profile.name in ("0.8.2", "2.7"):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        for key, api in apis().items():
            if api.name in SENT_BY_BROKERS and api.name in network.knows:
                version = version_sent(profile, api.name, network.knows[api.name][1])
                print(api.name, request_schema(key, version), response_schema(key, version))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    network.close()
os._exit(0)
"""


def test_what_a_broker_sends_is_written_without_opening_a_file() -> None:
    """A process of its own, which has not created the schemas before."""
    ended = subprocess.run(
        [sys.executable, "-u", "-c", WITHOUT_DESCRIPTORS],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("AlterIsr") == 1
    assert ended.stdout.count("Fetch") >= 2


def test_who_asks_for_something_new_when_there_are_no_descriptors_is_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the broker's end: the client asks again on another connection."""
    assert asks(served) == ANSWER
    with monkeypatch.context() as patch:
        patch.setattr("emulator.worlds.network.tcp.has_schema", lambda *_: False)
        patch.setattr("emulator.worlds.network.tcp.load_schema", no_descriptors)
        assert rest_of(served, FRAME) == b""
    assert "Too many open files" in served.reasons[-1]
    assert asks(served) == ANSWER


def no_descriptors(_: bytes) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_stranger_is_refused_while_the_kernels_thread_is_busy(served: Served) -> None:
    """It has no work with what is no request, so a flood does not keep it from its requests."""
    is_busy, goes_on = threading.Event(), threading.Event()

    def work() -> None:
        is_busy.set()
        assert goes_on.wait(10)

    served.clock.put(work)
    assert is_busy.wait(10)
    before = len(served.reasons)
    try:
        # A connection ends before its reason is logged, and the next one after that.
        assert rest_of(served, b"\0\0\0\2\0\0") == rest_of(served, b"\0\0\0\2\0\0") == b""
        assert "a request of 2 bytes" in served.reasons[before]
    finally:
        goes_on.set()
    assert asks(served) == ANSWER


def test_a_long_request_does_not_wait_for_the_schemas_of_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = MetadataRequest(("t" * 200,) * 50)
    assert send_request(("127.0.0.1", served.port), long, 10) == ANSWER
    is_loading, goes_on = threading.Event(), threading.Event()

    def load(_: bytes) -> None:
        is_loading.set()
        assert goes_on.wait(10)
        patch.undo()

    stranger = request_frame(MetadataRequest(), 8, 1, "stranger")
    with (
        monkeypatch.context() as patch,
        socket.create_connection(("127.0.0.1", served.port), 10) as waits,
    ):
        patch.setattr(
            "emulator.worlds.network.tcp.has_schema", lambda data, _: data[:4] != stranger[4:8]
        )
        patch.setattr("emulator.worlds.network.tcp.load_schema", load)
        waits.sendall(stranger)
        assert is_loading.wait(10)
        try:
            assert send_request(("127.0.0.1", served.port), long, 10) == ANSWER
        finally:
            goes_on.set()
        assert waits.recv(1)


def test_who_waits_for_an_answer_is_disconnected_when_the_network_ends() -> None:
    """Though the sockets' thread ends right behind it, and the selector has no connection that
    waits."""
    server = Served()
    server.answers = False
    with socket.create_connection(("127.0.0.1", server.port), 10) as waits:
        waits.sendall(FRAME)
        assert server.has_asked.wait(10)
        server.close()
        assert waits.recv(1) == b""
