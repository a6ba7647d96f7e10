"""What is known of a run of real Kafka before any log is read; wall clock in microseconds."""

from __future__ import annotations

import msgspec

from emulator.scenario.actions.base import Action
from emulator.trace.values import Parameters, ProcessState
from emulator.worlds.real_kafka.clients import Produced, wall_us
from emulator.worlds.real_kafka.consumer import Consumed
from zk.ops import Request


class ActionRecord(msgspec.Struct):
    """An action on the cluster; `returned_us`: when its client had the response."""

    at_us: int
    do: str
    broker: int
    parameters: Parameters
    returned_us: int = 0
    result: str = ""


class PassedRequest(msgspec.Struct, frozen=True):
    """A request that passed a broker's tap."""

    at_us: int
    client: str
    request: Request | str


class ProcessEvent(msgspec.Struct, frozen=True):
    """A broker's process changes its state; `orderly`: it ended after a SIGTERM; `noticed`: it
    ended by itself, and this is when that was seen."""

    at_us: int
    broker: int
    state: ProcessState
    orderly: bool = False
    noticed: bool = False


class RunNotes(msgspec.Struct):
    """All notes of a run. `sessions`: the owner of each ZooKeeper session."""

    began_us: int
    up_us: int = 0
    ended_us: int = 0
    late_us_max: int = 0
    actions: list[ActionRecord] = []
    requests: list[PassedRequest] = []
    processes: list[ProcessEvent] = []
    produced: list[Produced] = []
    consumed: list[Consumed] = []
    sessions: dict[int, str] = {}

    def record(self, action: Action) -> None:
        """Record an action that is carried out now."""
        broker = getattr(action, "broker", None) or 0
        self.actions.append(ActionRecord(wall_us(), action.name, broker, action.parameters))
