"""A broker's metadata of a partition is never older than what it returned before."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class MovesBack(Violation, frozen=True):
    """Leader epoch and version of the state znode, before and now."""

    epoch_before: int
    version_before: int
    epoch: int
    version: int

    sentence = (
        "broker {broker} showed leader epoch {epoch_before}, v{version_before}, and now shows"
        " leader epoch {epoch}, v{version}"
    )


class MetadataNeverMovesBack(Invariant):
    """The metadata of a partition that a broker returns to clients is never older than what it
    returned before (S9)."""

    def begin(self) -> None:
        self._shown: dict[int, dict[TopicPartition, tuple[int, int, int]]] = {}

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._shown.pop(event.broker, None)

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        shown = self._shown.setdefault(event.broker, {})
        for name in event.removed:
            shown.pop(name, None)
        for state in event.states:
            epoch, version, seq = shown.get(state.partition, (-1, -1, -1))
            if (state.leader_epoch, state.zk_version) < (epoch, version):
                self.violated(
                    MovesBack(
                        epoch,
                        version,
                        state.leader_epoch,
                        state.zk_version,
                        facts=(seq, event.seq),
                        partition=state.partition,
                        broker=event.broker,
                    )
                )
            shown[state.partition] = state.leader_epoch, state.zk_version, event.seq
