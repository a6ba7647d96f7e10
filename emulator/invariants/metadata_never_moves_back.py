"""What a broker tells clients of a partition is never older than what it told before."""

from __future__ import annotations

from emulator.invariants.base import Invariant
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class MetadataNeverMovesBack(Invariant):
    """What a broker tells clients of a partition is never older than what it told before (S9)."""

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
                text = f"broker {event.broker} showed leader epoch {epoch}, v{version}, and shows "
                text += f"leader epoch {state.leader_epoch}, v{state.zk_version}"
                self.violated(text, seq, event.seq, state.partition, event.broker)
            shown[state.partition] = state.leader_epoch, state.zk_version, event.seq
