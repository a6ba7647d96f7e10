"""Lines of the broker's end: one request at a time, and none before its answer has left."""

import socket
import struct
from collections.abc import Iterator

import pytest

from emulator.worlds.network.sockets import FramedSocket, Sockets

ANSWER = bytes(1 << 20)
FRAMES = 40
"""Their answers are more than the operating system takes for a client that does not read."""


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    made = Sockets()
    yield made
    made.close()


def test_who_does_not_read_is_not_served_on(sockets: Sockets) -> None:
    """All that he asked for is answered as he reads; nothing piles up here for him."""
    waiting_here: list[int] = []

    def accepted(line: FramedSocket) -> None:
        def answer(_: bytes) -> None:
            waiting_here.append(line.unsent)
            line.write(ANSWER)
            line.read_on()

        line.on_frame = answer
        line.start()

    server = sockets.listen("127.0.0.1", 0, accepted)
    with socket.create_connection(server.getsockname(), 10) as client:
        client.sendall(struct.pack(">iB", 1, 0) * FRAMES)
        left = FRAMES * len(ANSWER)
        while left:
            left -= len(client.recv(min(left, 1 << 16)))
    assert waiting_here == [0] * FRAMES
