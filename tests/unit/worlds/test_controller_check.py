"""Who is asked about the sender of a control request: the broker's own memory, or ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from emulator.kafka.protocol.messages import StopReplicaRequest
from emulator.kernel.scheduler import Kernel
from emulator.trace.events import ZkWatchFired
from emulator.trace.sink import Sink
from emulator.worlds.processes.controller_check import PATIENCE_US, ControllerCheck
from zk import paths
from zk.errors import SessionExpired
from zk.ops import EventType

NOBODY = -1


class Broker:
    """A broker's check beside a ZooKeeper whose znodes the test writes down."""

    def __init__(self) -> None:
        self.kernel = Kernel(Sink())
        self.controller, self.epoch = 1, 1
        """In ZooKeeper."""
        self.read = 1
        """The controller that the broker's own KafkaController has read."""
        self.answer_after_us = 1_000
        self.lookups = 0
        process = self.kernel.process("broker-3")
        self.check = ControllerCheck(
            self.kernel, process, lambda: cast(Any, self), lambda: self.read
        )

    async def get_controller_epoch(self) -> tuple[int, int]:
        self.lookups += 1
        await self.kernel.sleep(self.answer_after_us)
        if self.epoch < 0:
            raise SessionExpired
        return self.epoch, 0

    async def get_controller_id(self) -> int:
        return self.controller

    def sees(self, type_: EventType) -> None:
        fired = ZkWatchFired(0, 0, 3, "", -1, type=type_.value, path=paths.CONTROLLER)
        self.check.on_event(fired)

    def hears(self, controller: int, epoch: int) -> str:
        """What it decides about a request: accepted, or the reason for its rejection; and whether
        it asked ZooKeeper."""
        decided: list[str] = []
        before = self.lookups
        self.check(StopReplicaRequest(controller, epoch, -1, ()), decided.append)
        self.kernel.run(self.kernel.now + 2 * PATIENCE_US)
        (reason,) = decided
        return (reason or "accepted") + (", looked up" if self.lookups > before else "")


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.kernel.close()


def elect(broker: Broker, controller: int) -> None:
    broker.controller, broker.epoch = controller, broker.epoch + 1


def test_the_first_controller_is_accepted_before_the_broker_has_read_who_it_is(
    broker: Broker,
) -> None:
    broker.read = NOBODY
    assert broker.hears(1, 1) == "accepted"
    assert broker.hears(1, 1) == "accepted"


def test_after_an_election_that_the_broker_noticed_nobody_asks_zookeeper(broker: Broker) -> None:
    broker.hears(1, 1)
    elect(broker, 2)
    broker.sees(EventType.NODE_DELETED)
    broker.sees(EventType.NODE_CREATED)
    broker.read = 2
    assert broker.hears(2, 2) == "accepted"
    assert broker.hears(2, 2) == "accepted"


def test_a_request_that_is_faster_than_the_broker_s_own_read_is_looked_up_once(
    broker: Broker,
) -> None:
    broker.hears(1, 1)
    elect(broker, 2)
    broker.sees(EventType.NODE_DELETED)
    assert broker.hears(2, 2) == "accepted, looked up"
    assert broker.hears(2, 2) == "accepted"


def test_a_later_epoch_than_zookeeper_s_and_a_wrong_sender_are_rejected(broker: Broker) -> None:
    broker.hears(1, 1)
    said = "a control request of controller"
    assert broker.hears(1, 2) == f"{said} 1 with controller epoch 2; ZooKeeper has 1, looked up"
    assert broker.hears(9, 1) == (
        f"{said} 9 with controller epoch 1; ZooKeeper has controller 1 in that epoch, looked up"
    )
    assert broker.hears(1, 1) == "accepted"


def test_the_watch_event_of_the_new_controller_s_znode_allows_no_second_sender(
    broker: Broker,
) -> None:
    """Its request came before the event, which is no second election."""
    broker.hears(1, 1)
    elect(broker, 2)
    broker.sees(EventType.NODE_DELETED)
    broker.read = 2
    assert broker.hears(2, 2) == "accepted"
    broker.sees(EventType.NODE_CREATED)
    assert broker.hears(2, 3).startswith("a control request of controller 2")


def test_a_controller_that_was_replaced_gets_kafka_s_own_answer(broker: Broker) -> None:
    broker.hears(1, 1)
    elect(broker, 2)
    assert broker.hears(2, 2) == "accepted, looked up"
    assert broker.hears(1, 1) == "accepted"  # which Kafka answers with STALE_CONTROLLER_EPOCH


@pytest.mark.parametrize("why", ["ZooKeeper is slow", "the session has expired"])
def test_what_cannot_be_looked_up_is_accepted_as_kafka_accepts_it(broker: Broker, why: str) -> None:
    broker.hears(1, 1)
    if why == "ZooKeeper is slow":
        broker.answer_after_us = PATIENCE_US + 1
    else:
        broker.epoch = -1
    assert broker.hears(2, 7) == "accepted, looked up"
