"""Traces by hand: a script of what happens, numbered and timed as a run would."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.reader import Header
from emulator.trace.values import (
    Lagging,
    LoggedOp,
    Parameters,
    PartitionState,
    ProcessState,
    TopicPartition,
)

P0 = TopicPartition("orders", 0)
STATE = "/brokers/topics/{}/partitions/{}/state"
HEADER = Header(2, "by-hand", 7, "2.6", "simulated", {"replica.lag.time.max.ms": "2000"})

PROCESS_STATES: dict[Any, ProcessState] = {
    "pause": "paused",
    "resume": "up",
    "kill": "dead",
    "crash": "dead",
    "terminate": "stopping",
    e.BrokerStarting: "starting",
    e.BrokerStarted: "up",
    e.BrokerExited: "dead",
    e.BrokerHalted: "dead",
}

E = TypeVar("E")


class Script:
    """Each method lets one thing happen at the present time, and is the cause of the next."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.now = 0
        self.cause = -1
        self.zxid = 0

    def at(self, ms: float) -> Script:
        """Go to this time, in milliseconds; causes begin anew."""
        self.now, self.cause = round(ms * 1000), -1
        return self

    def add(self, kind: type[E], broker: int, *fields: Any, thread: str = "") -> E:
        """Put an event on the trace."""
        make: Any = kind
        event: Any = make(len(self.events), self.now, broker, thread, self.cause, *fields)
        self.cause = event.seq
        self.events.append(event)
        state = PROCESS_STATES.get(getattr(event, "do", kind))
        if broker and state is not None:
            changed = len(self.events), self.now, broker, thread, event.seq, state
            self.events.append(e.ProcessStateChanged(*changed))
        found: E = event
        return found

    def action(self, do: str, **arguments: Any) -> None:
        broker = arguments.pop("broker", 0)
        self.add(e.ActionApplied, broker, do, msgspec.convert(arguments, Parameters))

    def create(self, isr: tuple[int, ...], partition: TopicPartition = P0) -> None:
        """The controller (broker 3) writes the first state."""
        op = LoggedOp("create", STATE.format(*partition), _state(isr))
        check = LoggedOp("check", "/controller_epoch", version=2)
        self._transaction(3, "multi", None, None, None, False, (check, op))

    def write(
        self, broker: int, version: int, isr: tuple[int, ...], partition: TopicPartition = P0
    ) -> None:
        """A leader's conditional write went through."""
        self._transaction(broker, "setData", STATE.format(*partition), _state(isr), version)

    def delete(self, partition: TopicPartition = P0) -> None:
        self._transaction(3, "delete", STATE.format(*partition))

    def notification(self, broker: int, number: int, *partitions: TopicPartition) -> str:
        path = f"/isr_change_notification/isr_change_{number:010d}"
        named = [{"topic": p.topic, "partition": p.partition} for p in partitions]
        self._transaction(broker, "create", path, json.dumps({"partitions": named}))
        return path

    def _transaction(self, broker: int, *fields: Any) -> None:
        self.zxid += 1
        self.add(e.ZkTransaction, broker, self.zxid, *fields)

    def shows(
        self, broker: int, version: int, isr: tuple[int, ...], partition: TopicPartition = P0
    ) -> None:
        """An UpdateMetadata with this entry is in the broker's metadata cache."""
        state = PartitionState(partition, 1, 1, 0, isr, version, (1, 2, 3))
        self.add(e.MetadataCacheUpdated, broker, 3, 1, (1, 2, 3), (state,))

    def decides(
        self,
        before: tuple[int, ...],
        after: tuple[int, ...],
        version: int,
        *late: Lagging,
        partition: TopicPartition = P0,
    ) -> None:
        """Broker 1, the leader, decides to change the ISR; `version` is what it has cached."""
        change = "shrink" if len(after) < len(before) else "expand"
        numbers = 60, 118, 0, version
        self.add(e.IsrUpdateStarted, 1, partition, change, before, after, *numbers, late)

    def changes(
        self,
        before: tuple[int, ...],
        after: tuple[int, ...],
        version: int,
        *late: Lagging,
        partition: TopicPartition = P0,
    ) -> None:
        """Decision, write 4 ms later, answer 2 ms later; `version` is the new one."""
        self.decides(before, after, version - 1, *late, partition=partition)
        self.now += 4000
        self.write(1, version, after, partition)
        self.now += 2000
        self.add(e.IsrUpdated, 1, partition, "", after, version, 0)

    def shrink_and_late_news(self) -> Script:
        """The usual story: created, a follower paused, shrunk, notified after 5 s of quiet,
        shown."""
        self.at(0).action("up")
        self.create((1, 2, 3))
        for broker in (1, 2, 3):
            self.shows(broker, 0, (1, 2, 3))
        self.at(3000).action("pause", broker=2)
        self.at(5500).changes((1, 2, 3), (1, 3), 1, Lagging(2, 60, 2500))
        self.at(7500).add(e.IsrChangeHeld, 1, (P0,), 1994, 9000)
        self.at(10600).add(e.IsrChangeHeld, 1, (P0,), 4500, 9000)
        self.at(12500)
        path = self.notification(1, 0, P0)
        self.add(e.IsrChangeNotified, 1, path, (P0,), 6994, 13000)
        self.at(12508).add(e.ControllerCacheUpdated, 3, P0, 1, 0, (1, 3), 1, "notification")
        self.at(12512).shows(1, 1, (1, 3))
        self.now += 1000
        self.shows(3, 1, (1, 3))
        return self


def _state(isr: tuple[int, ...]) -> str:
    return json.dumps({"leader": 1, "leader_epoch": 0, "isr": isr, "controller_epoch": 1})
