"""A leader's pending proposal without an effective response (AlterIsr, 2.7 on); shared by several
hazards.

Owns when such a proposal begins and ends. The responses to the leader distinguish the hazards.
"""

from __future__ import annotations

from typing import ClassVar

from emulator.forensics.diagnoses.base import Diagnosis, Fact
from emulator.trace import events as e
from emulator.trace.values import TopicPartition

PATIENCE_US = 5_000_000
"""A leader resends its request after 50 ms."""


class PendingProposal(Diagnosis):
    """`error`: the error of the last response; empty: there was none."""

    error: ClassVar[str]
    needs = ("state-change", "server")

    def prepare(self) -> None:
        self._answer: dict[tuple[int, TopicPartition], str] = {}

    def on_alter_isr_proposed(self, event: e.AlterIsrProposed) -> None:
        key = event.broker, event.partition
        self._stop(event, event.partition, "it proposed again")
        self._answer[key] = ""
        isr = ",".join(map(str, event.isr))
        answer = f"was answered {self.error}" if self.error else "has no answer"
        self.begin(
            key,
            event,
            f"leader {event.broker} proposed ISR [{isr}] of {event.partition}, which {answer}: the"
            " change stays pending",
            event.partition,
            patience_us=PATIENCE_US,
        )

    def on_alter_isr_failed(self, event: e.AlterIsrFailed) -> None:
        key = event.broker, event.partition
        case = self.open_cases.get(key)
        if case is not None and event.outcome != e.IGNORED:
            self._answer[key] = event.error
            case.facts.append(event.seq)

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        self._stop(event, event.partition, "the change was made")

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._stop(event, event.partition, "a LeaderAndIsr brought the current state")

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._stop(event, event.partition, "a LeaderAndIsr brought the current state")

    def on_stop_replica(self, event: e.StopReplica) -> None:
        self._stop(event, event.partition, "its replica was stopped")

    def _stop(self, event: Fact, partition: TopicPartition, how: str) -> None:
        key = event.broker, partition
        if self._answer.pop(key, "") != self.error:
            self.forget(key)
        self.end(key, event, how)

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting"):
            for key in self.keys(lambda case: case.broker == event.broker):
                assert isinstance(key, tuple)
                self._stop(event, key[1], "its process ended")

    def finish(self, now_us: int) -> None:
        for key, answer in self._answer.items():
            if answer != self.error:
                self.forget(key)
        super().finish(now_us)
