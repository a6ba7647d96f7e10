"""Causes on a real server, reported in the order in which threads happen to see them."""

from __future__ import annotations

from collections.abc import Callable

from emulator.kernel.scheduler import Kernel
from emulator.trace.events import ZkRequest, ZkTransaction
from emulator.trace.sink import Sink
from emulator.worlds.live_causality import InFlightRequest, LiveCauses
from emulator.worlds.zk_observer import TracingObserver
from tests.unit.kernel.stage import Stage
from zk.ops import SetData, Transaction

BROKERS_WRITE = SetData("/a", b"1", 0)
ITS_TRANSACTION = Transaction(7, 0xB1, "setData", "/a", data=b"1", version=1)


class Wire:
    """A broker's tap: it reports what has passed when the causes are reported, or on request."""

    def __init__(self, kernel: Kernel, clients: dict[int, str]) -> None:
        self.asked = 0
        self.behind: list[Callable[[], None]] = []
        observer = TracingObserver(kernel, lambda number: clients.get(number, ""))
        self.causes = LiveCauses(
            kernel, observer, lambda number: clients.get(number, ""), self._catch_up
        )

    def passes(self, request: SetData) -> InFlightRequest:
        flight = self.causes.submitted("broker-1", request)
        self.behind.append(lambda: self.causes.on_request(0, "broker-1", request))
        return flight

    def _catch_up(self) -> None:
        self.asked += 1
        while self.behind:
            self.behind.pop(0)()


def kinds_and_causes(sink: Sink) -> list[tuple[type, int, int]]:
    return [(type(event), event.seq, event.cause) for event in sink.events]


def test_a_transaction_whose_request_was_told_is_because_of_it() -> None:
    stage = Stage()
    wire = Wire(stage.kernel, {0xB1: "broker-1"})
    wire.passes(BROKERS_WRITE)
    wire.behind.pop()()
    wire.causes.on_transaction(0, ITS_TRANSACTION)
    assert kinds_and_causes(stage.sink) == [(ZkRequest, 0, -1), (ZkTransaction, 1, 0)]
    assert wire.asked == 0


def test_a_transaction_that_is_seen_before_its_request_waits_for_it() -> None:
    """The tap passes bytes on first and reads them behind; a log is read by whom it pleases."""
    stage = Stage()
    wire = Wire(stage.kernel, {0xB1: "broker-1"})
    flight = wire.passes(BROKERS_WRITE)
    wire.causes.on_transaction(0, ITS_TRANSACTION)
    assert kinds_and_causes(stage.sink) == [(ZkRequest, 0, -1), (ZkTransaction, 1, 0)]
    assert (flight.passed, flight.applied) == (0, 1)


def test_the_transaction_of_a_retry_that_is_on_its_way_is_not_that_of_the_lost_request() -> None:
    stage = Stage()
    wire = Wire(stage.kernel, {0xB1: "broker-1"})
    lost = wire.passes(BROKERS_WRITE)
    wire.behind.pop()()
    lost.lost = True
    retry = wire.passes(BROKERS_WRITE)
    wire.causes.on_transaction(0, ITS_TRANSACTION)
    assert kinds_and_causes(stage.sink) == [
        (ZkRequest, 0, -1),
        (ZkRequest, 1, -1),
        (ZkTransaction, 2, 1),
    ]
    assert (lost.applied, retry.applied) == (-1, 2)


def test_a_lost_request_was_applied_if_nothing_else_can_have_been() -> None:
    stage = Stage()
    wire = Wire(stage.kernel, {0xB1: "broker-1"})
    lost = wire.passes(BROKERS_WRITE)
    wire.behind.pop()()
    lost.lost = True
    wire.causes.on_transaction(0, ITS_TRANSACTION)
    assert kinds_and_causes(stage.sink) == [(ZkRequest, 0, -1), (ZkTransaction, 1, 0)]
    assert lost.applied == 1


def test_nobody_is_asked_about_the_transaction_of_a_stranger() -> None:
    stage = Stage()
    wire = Wire(stage.kernel, {})
    wire.passes(BROKERS_WRITE)
    wire.causes.on_transaction(0, ITS_TRANSACTION)
    assert kinds_and_causes(stage.sink) == [(ZkTransaction, 0, -1)]
    assert wire.asked == 0
