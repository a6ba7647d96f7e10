"""Traces by hand for invariants: what ZooKeeper, leaders and followers do, event by event."""

from __future__ import annotations

from typing import Any

from emulator.invariants.base import Monitor, Violation
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import LoggedOp, PartitionState, TopicPartition

ORDERS = TopicPartition("orders", 0)
STATE = "/brokers/topics/orders/partitions/0/state"
REPLICAS = (1, 2, 3)


class History:
    """Events in order, one millisecond after the other; 3 is controller, 1 leads orders-0."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self._version = -1

    def tell(self, kind: type[Any], broker: int, *fields: Any) -> History:
        seq = len(self.events)
        self.events.append(kind(seq, seq * 1000, broker, "t", seq - 1, *fields))
        return self

    # -- ZooKeeper ---------------------------------------------------------------------------------

    def logged(self, broker: int, op: str, path: str, data: str = "", version: int = 0) -> History:
        return self.tell(e.ZkTransaction, broker, 1, op, path, data, version)

    def fenced(self, broker: int, *ops: LoggedOp) -> History:
        """A controller's transaction."""
        check = LoggedOp("check", "/controller_epoch", version=1)
        return self.tell(
            e.ZkTransaction, broker, 1, "multi", None, None, None, False, (check, *ops)
        )

    def elected(self, broker: int = 3, epoch: int = 1) -> History:
        data = f'{{"version":1,"brokerid":{broker}}}'
        self.tell(
            e.ZkTransaction,
            broker,
            1,
            "multi",
            None,
            None,
            None,
            False,
            (
                LoggedOp("create", "/controller", data, ephemeral=True),
                LoggedOp("setData", "/controller_epoch", str(epoch), epoch),
            ),
        )
        return self.tell(e.ControllerElected, broker, epoch, epoch)

    def assigned(self, *replicas: int) -> History:
        listed = ",".join(map(str, replicas))
        data = f'{{"version":2,"partitions":{{"0":[{listed}]}}}}'
        return self.logged(3, "setData", "/brokers/topics/orders", data)

    def created(self, *isr: int) -> History:
        """The topic, its state znode; the controller knows it."""
        isr = isr or REPLICAS
        listed = ",".join(map(str, REPLICAS))
        self.logged(3, "create", "/brokers/topics/orders", f'{{"partitions":{{"0":[{listed}]}}}}')
        self._version = 0
        self.fenced(3, LoggedOp("create", STATE, payload(isr[0], 0, isr)))
        self.tell(e.ControllerCacheUpdated, 3, ORDERS, isr[0], 0, isr, 0, "created")
        return self.told(isr[0], 0, *isr)

    def wrote(self, broker: int, leader: int, epoch: int, *isr: int, by: str = "") -> History:
        """A version of the state znode; `by` controller: a fenced write."""
        self._version += 1
        data = payload(leader, epoch, isr)
        if by != "controller":
            return self.logged(broker, "setData", STATE, data, self._version)
        return self.fenced(broker, LoggedOp("setData", STATE, data, self._version))

    # -- brokers -----------------------------------------------------------------------------------

    def told(self, leader: int, epoch: int, *isr: int, version: int | None = None) -> History:
        """LeaderAndIsr is obeyed by all replicas."""
        version = self._version if version is None else version
        state = PartitionState(ORDERS, 1, leader, epoch, isr, version, REPLICAS)
        for broker in REPLICAS:
            self.tell(e.LeaderAndIsr, broker, 3, 1, state)
            if broker == leader:
                self.tell(e.BecomesLeader, broker, ORDERS, epoch, self.leo(broker), 0)
            else:
                self.tell(e.BecomesFollower, broker, ORDERS, leader, epoch, self.leo(broker), 0)
        return self

    def leo(self, broker: int) -> int:
        for event in reversed(self.events):
            if isinstance(event, e.RecordsAppended) and event.broker == broker:
                return event.leo
            if isinstance(event, e.LogTruncated) and event.broker == broker:
                return event.to_offset
        return 0

    def appended(self, broker: int, base: int, leo: int, epoch: int = 0) -> History:
        role = "leader" if self._leads(broker) else "follower"
        return self.tell(e.RecordsAppended, broker, ORDERS, role, base, leo, epoch, 100)

    def copied(self, base: int, leo: int, *brokers: int, epoch: int = 0) -> History:
        for broker in brokers:
            self.tell(e.RecordsAppended, broker, ORDERS, "follower", base, leo, epoch, 100)
        return self

    def hw(self, broker: int, hw: int) -> History:
        role = "leader" if self._leads(broker) else "follower"
        return self.tell(e.HwAdvanced, broker, ORDERS, role, hw, self.leo(broker))

    def _leads(self, broker: int) -> bool:
        roles = [
            isinstance(event, e.BecomesLeader)
            for event in self.events
            if isinstance(event, e.BecomesLeader | e.BecomesFollower) and event.broker == broker
        ]
        return bool(roles) and roles[-1]

    def shown(self, version: int, epoch: int, *isr: int, at: tuple[int, ...] = REPLICAS) -> History:
        state = PartitionState(ORDERS, 1, isr[0], epoch, isr, version, REPLICAS)
        for broker in at:
            self.tell(e.MetadataCacheUpdated, broker, 3, 1, REPLICAS, (state,))
        return self

    def produced(self, base: int, count: int) -> History:
        return self.tell(e.RecordsProduced, 0, "p", ORDERS, "all", "ok", base, count, 0)

    def started(self, *brokers: int) -> History:
        """Processes that begin, and register."""
        for broker in brokers:
            self.tell(e.BrokerStarting, broker, "2.6")
            self.logged(broker, "create", f"/brokers/ids/{broker}", "{}")
        return self


def payload(leader: int, epoch: int, isr: tuple[int, ...]) -> str:
    members = ",".join(map(str, isr))
    return (
        f'{{"controller_epoch":1,"leader":{leader},"version":1,'
        f'"leader_epoch":{epoch},"isr":[{members}]}}'
    )


def violations(history: History) -> list[Violation]:
    """The violations of all invariants, including liveness."""
    monitor = Monitor(liveness=True)
    for event in history.events:
        monitor(event)
    return monitor.at_end()


def broken(history: History) -> set[str]:
    return {violation.invariant for violation in violations(history)}
