"""Strangers that speak Kafka's protocol, more or less: brokers that get real requests with wrong
bytes in them go on, whatever of it could be read."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import MetadataRequest, MetadataResponse, Request
from emulator.testing.cluster import Cluster, scenario_of
from emulator.worlds.wire.api import supported_versions
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import arrived
from tests.unit.worlds.test_wire import FRAMES, STRIKES, garbled

KNOWS = supported_versions(profiles()["2.6"])
ASKED = st.tuples(
    st.sampled_from([data for data, profile in FRAMES if profile == "2.6"]),
    st.one_of(STRIKES, st.just([])),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 1, 20, 200]),
)


class Stranger:
    """A connection: what is answered is kept."""

    client = "stranger"

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def respond(self, response: Any) -> None:
        self.answers.append(response)

    def hang_up(self) -> None:
        pass


def _requests(data: bytes) -> tuple[Request, ...]:
    try:
        return arrived(data, KNOWS).sent.requests
    except Malformed:
        return ()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ASKED, min_size=1, max_size=40))
def test_whatever_strangers_ask_brokers_go_on(
    asked: list[tuple[bytes, list[tuple[int, bytes | None]], int, int]],
) -> None:
    """Forged requests of controllers and followers among it: what they bring about is theirs."""
    with Cluster(scenario_of(1, 2, 3), judged=False) as cluster:
        cluster.topic("orders", (1, 2, 3)).topic("payments", (2, 3), (3, 1), (1, 2), (2, 3))
        for data, strikes, broker, wait_ms in asked:
            for request in _requests(garbled(data, strikes)):
                cluster.node(broker).receive(request, Stranger())
                cluster.run_ms(wait_ms)
        for broker in (1, 2, 3):
            client = Stranger()
            cluster.node(broker).receive(MetadataRequest(), client)
            cluster.run_ms(2_000)
            assert [type(answer) for answer in client.answers] == [MetadataResponse]
