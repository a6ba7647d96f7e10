"""`isr watch` and `isr top` beside a real server, whose znodes a broker of ours writes."""

from __future__ import annotations

import io
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec
import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from emulator.kafka.protocol.messages import MetadataResponse
from emulator.worlds.clients.metadata_query import MetadataQuery
from tests.command import Isr
from tests.live.leftovers import nothing_stays
from tests.live.zk.owner import PATIENCE_S, Owner, connect
from zk import paths
from zk.client.codec import (
    ControllerZNode,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    encode_controller,
    encode_state,
    encode_topic,
)
from zk.client.codec_admin import BrokerInfo, EndPoint, encode_broker
from zk.ops import Create, CreateMode, SetData
from zk.real.kazoo_service import KazooService
from zk.real.server import Address, EmbeddedServer, ensure_chroot, wait_until_ready

STATE = paths.topic_partition_state("orders", 0)


# -- a broker that answers Metadata ----------------------------------------------------------------


class FakeBroker:
    """Answers ApiVersions and Metadata with prepared responses; otherwise it hangs up."""

    def __init__(self, newest: int = 7) -> None:
        self.newest, self.isr = newest, (1, 2)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.where: tuple[str, int] = self._listener.getsockname()[:2]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                while head := stream.read(4):
                    request = stream.read(*struct.unpack(">i", head))
                    answer = self._answer(request)
                    connection.sendall(struct.pack(">i", len(answer)) + answer)

    def _answer(self, request: bytes) -> bytes:
        key, version, number = struct.unpack_from(">hhi", request)
        if key == 18:
            body = struct.pack(">hihhh", 0, 1, 3, 0, self.newest)
        else:
            assert (key, version) == (3, self.newest)
            body = self._metadata()
        return struct.pack(">i", number) + body

    def _metadata(self) -> bytes:
        response: Any = load_response_schema(3, self.newest)
        topic = response.__annotations__["topics"].__args__[0]
        partition = topic.__annotations__["partitions"].__args__[0]
        fields = {
            "error_code": ErrorCode.none, "partition_index": 0, "leader_id": 1,
            "replica_nodes": (1, 2), "isr_nodes": self.isr, "offline_replicas": (),
            **({"leader_epoch": 4} if self.newest >= 7 else {}),
        }  # fmt: skip
        if self.newest < 5:
            del fields["offline_replicas"]
        one = topic(error_code=ErrorCode.none, name="orders", partitions=(partition(**fields),))
        more: dict[str, Any] = {}
        if self.newest >= 3:
            from datetime import timedelta

            more["throttle_time"] = timedelta(0)
        out = io.BytesIO()
        entity_writer(response)(out, response(brokers=(), controller_id=2, topics=(one,), **more))
        return out.getvalue()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.mark.parametrize(("newest", "epoch"), [(7, 4), (5, -1), (1, -1)])
def test_a_brokers_metadata_is_asked_for_in_the_newest_version_that_both_know(
    newest: int, epoch: int
) -> None:
    with nothing_stays():
        broker, query = FakeBroker(newest), MetadataQuery()
        first = query({1: broker.where})[1]
        assert isinstance(first, MetadataResponse)
        (state,) = first.partitions
        assert (first.controller_id, str(state.partition)) == (2, "orders-0")
        assert (state.leader, state.leader_epoch, state.isr) == (1, epoch, (1, 2))
        broker.isr = (1,)
        second = query({1: broker.where})[1]
        assert isinstance(second, MetadataResponse)
        assert second.partitions[0].isr == (1,)
        query.close()
        broker.close()


def test_a_broker_that_is_not_there_or_talks_nonsense_has_no_view_but_a_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = listener.getsockname()[:2]

        def rubbish() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")

        server = threading.Thread(target=rubbish, daemon=True)
        server.start()
        query = MetadataQuery()
        problems = query({1: where, 2: ("127.0.0.1", 1)})
        server.join()
        assert all(isinstance(problem, str) for problem in problems.values())
        assert "refused" in str(problems[2])


# -- the commands ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def address(server: EmbeddedServer, request: pytest.FixtureRequest) -> Address:
    """With a chroot of this test's own."""
    own = msgspec.structs.replace(server.address, chroot=f"/{request.node.name}")
    ensure_chroot(own)
    return own


@pytest.fixture
def owner() -> Owner:
    return Owner()


@contextmanager
def cluster(address: Address, owner: Owner, port: int) -> Iterator[Any]:
    """A session that has written what a broker and a controller write."""
    service = KazooService(address)
    session = connect(service, owner, timeout_ms=10_000)
    for path in (paths.BROKER_IDS, paths.topic_partition("orders", 0), "/isr_change_notification"):
        words = path.split("/")[1:]
        for depth in range(len(words)):
            at = "/" + "/".join(words[: depth + 1])
            is_topic = at == paths.topic("orders")
            data = encode_topic({0: ReplicaAssignment((1, 2))}) if is_topic else b""
            owner.ask_one(session, Create(at, data))
    end = EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", port)
    owner.ask(
        session,
        Create(STATE, state((1, 2))),
        Create(paths.CONTROLLER_EPOCH, b"1"),
        Create(paths.CONTROLLER, encode_controller(ControllerZNode(1, 0)), CreateMode.EPHEMERAL),
        Create(paths.broker_id(1), encode_broker(BrokerInfo((end,))), CreateMode.EPHEMERAL),
    )
    try:
        yield session
    finally:
        service.close()


def state(isr: tuple[int, ...]) -> bytes:
    return encode_state(LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 4, isr, 0), 1))


@pytest.mark.live
def test_watch_prints_what_is_there_and_then_each_change(address: Address, owner: Owner) -> None:
    command = [sys.executable, "-c", "from emulator.cli import main; main()", "watch", "--json"]
    with (
        cluster(address, owner, 1) as session,
        subprocess.Popen(
            [*command, "--zookeeper", str(address)], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdout is not None
        told = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert [one["about"] for one in told] == ["controller", "broker 1", "orders-0"]
        owner.ask_one(session, SetData(STATE, state((1,))))
        shrink = json.loads(process.stdout.readline())
        assert shrink["text"] == "ISR shrinks [1,2] → [1] v0→v1"
        assert shrink["facts"]["state"]["isr"] == [1]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.live
def test_watch_says_that_zookeeper_is_gone_and_goes_on_when_it_is_back(
    server: EmbeddedServer, address: Address, owner: Owner
) -> None:
    command = [sys.executable, "-c", "from emulator.cli import main; main()", "watch", "--json"]
    with (
        cluster(address, owner, 1),
        subprocess.Popen(
            [*command, "--zookeeper", str(address)], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            lines = (json.loads(line) for line in process.stdout)
            assert next(lines)["about"] == "controller"
            server.stop()
            lost = next(one for one in lines if one["about"] == "ZooKeeper")
            assert (lost["text"], lost["facts"]) == ("disconnected", {"up": False})
            server.launch()
            wait_until_ready(server.address)
            back = next(one for one in lines if one["about"] == "ZooKeeper")
            assert (back["text"], back["facts"]) == ("connected", {"up": True})
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()  # or a failure would wait for it


@pytest.mark.live
def test_top_as_json_is_one_look_from_all_sides(isr: Isr, address: Address, owner: Owner) -> None:
    broker = FakeBroker()
    broker.isr = (1,)
    with closing(broker), nothing_stays(), cluster(address, owner, broker.where[1]):
        look = json.loads(isr("top", "--zookeeper", str(address), "--json")[1])
        assert (look["seen"]["controller"], look["seen"]["controller_epoch"]) == (1, 1)
        by_view = {one["view"]: one for one in look["views"]["orders-0"]}
        assert by_view["metadata 1"]["state"]["isr"] == [1]
        assert (by_view["metadata 1"]["differs"], by_view["metadata 1"]["known"]) == (True, True)
        assert by_view["controller 1"]["known"] is False


def test_without_a_terminal_top_says_what_to_do_instead(isr: Isr) -> None:
    code, told = isr.fails("top")
    assert code == 64
    assert "isr watch" in told


def test_where_nobody_answers_it_is_one_line(isr: Isr) -> None:
    assert isr.fails("watch", "--zookeeper", "nowhere")[0] == 64
