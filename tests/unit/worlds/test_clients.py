"""A client's knowledge of leaders, from any brokers in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.protocol.messages import LiveBroker, MetadataRequest, MetadataResponse, Request
from emulator.kernel.scheduler import Kernel, Process
from emulator.trace.sink import Sink
from emulator.worlds.clients.clients import Bootstrap, ClientConnection, ClusterView
from tests.interaction.hosting import LIVE, ORDERS_0, state_of

Told = tuple[int, int]
"""A leader (0: none) and a leader epoch."""

TOLD = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=8)


class Teller:
    """A connection on which Metadata is answered as the script says."""

    open = True

    def __init__(self, told: list[Told], version: int) -> None:
        self._told, self._version = list(told), version

    async def send(self, request: Request, timeout_ms: int) -> Any:
        assert isinstance(request, MetadataRequest)
        leader, epoch = self._told.pop(0)
        state = state_of(ORDERS_0, leader=leader or -1, epoch=epoch)
        return MetadataResponse(LIVE, 1, (state,), self._version)

    async def connect_from(self, *_: object) -> ClientConnection:
        return self  # type: ignore[return-value]


def believed(told: list[Told], version: int) -> int:
    """The leader according to all responses so far; 0: none."""
    kernel = Kernel(Sink())
    process: Process = kernel.process("client")
    teller = Teller(told, version)
    view = ClusterView(Bootstrap(kernel, teller, LIVE), process)

    async def listen() -> None:
        for _ in told:
            await view.refresh()

    process.spawn("listener", listen())
    kernel.run(1_000_000)
    kernel.close()
    leader: LiveBroker | None = view.leaders.get(ORDERS_0)
    return leader.broker if leader else 0


@given(TOLD)
def test_the_last_of_the_newest_epoch_is_believed(told: list[Told]) -> None:
    newest = max(epoch for _, epoch in told)
    assert believed(told, 9) == [leader for leader, epoch in told if epoch == newest][-1]


@given(TOLD)
def test_where_epochs_are_not_to_be_trusted_the_last_is_believed(told: list[Told]) -> None:
    assert believed(told, 8) == told[-1][0]
