"""A broker that joins the ISR is registered, and is the same process that fetched."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State


class UnregisteredMember(Violation, frozen=True):
    sentence = "broker {broker} joins the ISR, but is not registered"


class RestartedMember(Violation, frozen=True):
    sentence = "broker {broker} joins the ISR, but has restarted since its leader decided so"


class EligibleMembersJoin(Invariant):
    """When a replica's ISR membership is written to ZooKeeper, its broker is registered and has
    not restarted since the leader decided to add it (S8)."""

    def begin(self) -> None:
        self._decided: dict[tuple[object, int], int] = {}
        self._gone: dict[int, int] = {}
        self.state.partitions.listen(self._written)

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        if event.change == "expand":
            for member in event.to_isr:
                self._decided[event.partition, member] = event.seq

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for path in event.removed:
            if path.startswith("/brokers/ids/"):
                self._gone[int(path.rpartition("/")[2])] = event.seq

    def _written(self, partition: Partition, state: State) -> None:
        """Members that the controller writes are not checked: it only removes members."""
        if len(partition.states) < 2 or not self.state.znodes.all:
            return  # real Kafka's logs do not contain registrations
        before = partition.states[-2]
        for member in state.isr:
            decided = self._decided.get((partition.name, member), -1)
            if member in before.isr or decided < 0:
                continue
            if not self.state.znodes.is_registered(member):
                facts = self._gone.get(member, decided), state.seq
                self.violated(
                    UnregisteredMember(facts=facts, partition=partition.name, broker=member)
                )
            elif self.state.metadata.started.get(member, -1) > decided:
                facts = decided, state.seq
                self.violated(RestartedMember(facts=facts, partition=partition.name, broker=member))
