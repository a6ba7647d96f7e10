"""A small cluster in virtual time, driven by hand: the stage of the tests of the spec's sentences.

    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3))
        cluster.do(Pause(2)).run_ms(3000)
        assert cluster.isr_history() == [...]

Times are virtual; latencies are drawn from the declared ranges, under one seed. No invariant is
judged: many of these sentences are about versions that break some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.testing.cluster import FIRST, Cluster, scenario_of
from emulator.trace import events

ORDERS_0 = FIRST
LAG_MS = 2000


def switched(guard: str, state: bool, profile: str = "2.6") -> dict[str, object]:
    """A version with this guard on or off."""
    return {"profile": profile, "guards": {guard: state}}


class Emulated(Cluster):
    """Brokers that have booted one after the other, in this order; the first one is controller."""

    def __init__(
        self,
        *brokers: int,
        seed: int = 1,
        up: bool = True,
        profile: str = "2.6",
        guards: Mapping[str, bool] | None = None,
        broker_profiles: Mapping[int, str] | None = None,
        **settings: object,
    ) -> None:
        """`settings` are Kafka's, with underscores; the lag is 2 s unless it is given."""
        named = {"replica_lag_time_max_ms": LAG_MS, "auto_leader_rebalance_enable": "false"}
        named |= settings
        scenario = scenario_of(
            *brokers,
            profile=profile,
            guards=guards,
            broker_profiles=broker_profiles,
            settings={key.replace("_", "."): value for key, value in named.items()},
        )
        super().__init__(scenario, seed, up=up, judged=False)

    def run_until(self, condition: Callable[[], object], limit_ms: int = 30_000) -> int:
        """Run in small steps until the condition holds; returns the milliseconds that took."""
        return self.until(condition, limit_ms)

    def requests(self, broker: int) -> list[str]:
        """The requests on the wire between a broker and ZooKeeper, in the notation of spec
        §2.12."""
        return [_line(e) for e in self.seen(events.ZkRequest, broker=broker)]


def _line(request: events.ZkRequest) -> str:
    if request.ops:
        return "multi " + " ".join(f"{op.op} {op.path}" for op in request.ops)
    watch = " W" if request.watch else ""
    return request.op if request.path is None else f"{request.op} {request.path}{watch}"
