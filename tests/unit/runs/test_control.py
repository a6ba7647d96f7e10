"""The socket through which commands reach a cluster that is up."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import msgspec
import pytest

from emulator.runs.control import (
    SOCKET,
    Apply,
    ClusterUnreachable,
    ControlRequest,
    ControlResponse,
    ControlSocket,
    Down,
    Heal,
    Status,
    request_of,
)
from emulator.scenario.errors import UserError
from tests.live.leftovers import nothing_stays

REQUESTS: list[ControlRequest] = [
    Apply(["pause", "2"], 3_000_000),
    Heal(["1", "zookeeper"]),
    Status(),
    Down(),
]


def test_requests_arrive_as_they_were_sent_and_nothing_stays(tmp_path: Path) -> None:
    requests: list[ControlRequest] = []

    def respond(request: ControlRequest) -> ControlResponse:
        requests.append(request)
        return ControlResponse(f"{len(requests)}")

    with nothing_stays(), ControlSocket(tmp_path, respond):
        texts = [request_of(tmp_path, request).text for request in REQUESTS]
    assert requests == REQUESTS
    assert texts == ["1", "2", "3", "4"]
    assert not (tmp_path / SOCKET).exists()


def test_only_its_owner_can_use_it_wherever_it_is(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120) / ("y" * 120)  # longer than a socket's path may be
    folder.mkdir(parents=True)
    with ControlSocket(folder, lambda _: ControlResponse("here")):
        mode = (folder / SOCKET).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        assert request_of(folder, Status()).text == "here"


def test_a_refusal_is_an_error_where_the_command_was_given(tmp_path: Path) -> None:
    def refuse(_: ControlRequest) -> ControlResponse:
        raise UserError("there is no broker 9")

    with ControlSocket(tmp_path, refuse), pytest.raises(UserError, match=r"^there is no broker 9$"):
        request_of(tmp_path, Apply(["pause", "9"]))


def test_a_request_that_waits_holds_up_no_other(tmp_path: Path) -> None:
    waits, goes_on = threading.Event(), threading.Event()

    def respond(request: ControlRequest) -> ControlResponse:
        if isinstance(request, Apply):
            waits.set()
            assert goes_on.wait(10)
        return ControlResponse("done")

    with ControlSocket(tmp_path, respond):
        slow = threading.Thread(target=request_of, args=(tmp_path, Apply(["create_topic"])))
        slow.start()
        assert waits.wait(10)
        assert request_of(tmp_path, Heal()).text == "done"
        goes_on.set()
        slow.join(10)
        assert not slow.is_alive()


@pytest.mark.parametrize("text", [b"", b"nonsense\n", b'{"type":"reboot"}\n'])
def test_what_is_no_request_is_not_answered_and_harms_nothing(tmp_path: Path, text: bytes) -> None:
    with ControlSocket(tmp_path, lambda _: ControlResponse("here")):
        descriptor = os.open(tmp_path, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(f"/proc/self/fd/{descriptor}/{SOCKET}")
            stranger.sendall(text)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(100) == b""
        os.close(descriptor)
        assert request_of(tmp_path, Status()).text == "here"


def test_a_cluster_that_is_not_up_is_named(tmp_path: Path) -> None:
    """Whether it never was, or its process was killed and left the file."""
    with pytest.raises(ClusterUnreachable, match="the cluster of this run is not up"):
        request_of(tmp_path, Status())
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / SOCKET))
    with pytest.raises(ClusterUnreachable, match="is not up"):
        request_of(tmp_path, Status())


def test_messages_are_told_apart_by_their_type() -> None:
    decoded = [
        msgspec.json.decode(msgspec.json.encode(one), type=ControlRequest) for one in REQUESTS
    ]
    assert decoded == REQUESTS
