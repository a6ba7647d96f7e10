"""Findings about a cluster's control plane in a trace: a time line, windows of staleness, stuck
partitions.

Everything is derived from events that real clusters log, so it works on imported and on emulated
runs. It must not know which actions were applied to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from emulator.forensics.diagnoses.base import Coverage, Diagnosed, Diagnoses
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.state import TraceState
from emulator.trace.state.gauges import is_under_replicated
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.state.spans import span_at
from emulator.trace.values import ProcessState, TopicPartition

STALE_FROM_US = 1_000_000
"""Shorter windows are normal."""


class Moment(msgspec.Struct, frozen=True):
    """One line of the time line; `seq` is its event."""

    t_us: int
    what: str
    broker: int
    text: str
    seq: int


class Stale(msgspec.Struct, frozen=True):
    """A broker returned an outdated state to clients; `to_us` None: until the end."""

    broker: int
    partition: TopicPartition
    from_us: int
    to_us: int | None
    shown: int
    newest: int


class Stuck(msgspec.Struct, frozen=True):
    """A partition without a leader, or with replicas out of sync, at the end."""

    partition: TopicPartition
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    since_us: int


class Findings(msgspec.Struct, frozen=True):
    """All findings of a report. `states_known`, `metadata_known`: whether the trace has versions of
    partitions' states, and brokers' metadata. Without them stuck partitions and staleness are
    unknown."""

    timeline: list[Moment]
    stale: list[Stale]
    stuck: list[Stuck]
    diagnoses: list[Diagnosed]
    end_us: int
    states_known: bool = True
    metadata_known: bool = True


def find(events: Iterable[AnyEvent], coverage: Coverage | None = None) -> Findings:
    line, state = _TimeLine(), TraceState(level_histories=False)
    diagnoses = Diagnoses(state, coverage)
    state.partitions.listen(line.written)
    hear_line = Dispatch([line])
    for event in events:
        state(event)
        hear_line(event)
        diagnoses(event)
    return Findings(
        timeline=line.moments,
        stale=sorted(_stale(state), key=lambda one: (one.from_us, one.broker, one.partition)),
        stuck=list(_stuck(state.partitions)),
        diagnoses=diagnoses.finish(),
        end_us=state.clock.now_us,
        states_known=any(one.states for one in state.partitions.all.values()),
        metadata_known=bool(state.metadata.history),
    )


def isr_history(events: Iterable[AnyEvent]) -> dict[TopicPartition, list[tuple[int, ...]]]:
    partitions = Partitions()
    hear = Dispatch([partitions])
    for event in events:
        hear(event)
    return {name: one.isr_history for name, one in partitions.all.items() if one.states}


class _TimeLine:
    """ISR changes, elections, controllers, sessions and processes, in trace order."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._last: dict[TopicPartition, State] = {}
        self._process: dict[int, ProcessState] = {}

    def _add(self, t_us: int, what: str, broker: int, text: str, seq: int) -> None:
        self.moments.append(Moment(t_us, what, broker, text, seq))

    def written(self, partition: Partition, state: State) -> None:
        before = self._last.get(partition.name)
        self._last[partition.name] = state
        isr = _list(state.isr)
        if before is None or state.version == 0:
            what, text = "created", f"leader {state.leader}, ISR {isr}"
        elif state.leader != before.leader:
            who = f"leader {before.leader} → {state.leader}" if state.leader >= 0 else "no leader"
            what, text = "election", f"{who}, ISR {_list(before.isr)} → {isr}"
        elif state.isr != before.isr:
            what, text = "isr", f"ISR {_list(before.isr)} → {isr}"
        else:
            what, text = "epoch", f"leader epoch {before.leader_epoch} → {state.leader_epoch}"
        text = f"{partition.name} v{state.version}: {text}"
        self._add(state.from_us, what, state.by, text, state.seq)

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        text = f"broker {event.broker} is controller, epoch {event.controller_epoch}"
        self._add(event.t, "controller", event.broker, text, event.seq)

    def on_zk_session_state(self, event: e.ZkSessionState) -> None:
        if event.state == "Expired":
            text = f"broker {event.broker} learns that its session has expired"
            self._add(event.t, "session", event.broker, text, event.seq)

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._add(event.t, "broker", event.broker, f"broker {event.broker} starts", event.seq)

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        before = self._process.get(event.broker)
        self._process[event.broker] = event.state
        match event.state:
            case "paused":
                text = f"broker {event.broker} is paused"
            case "stopping":
                text = f"broker {event.broker} shuts down"
            case "dead" if before == "stopping":
                text = f"broker {event.broker} has ended"
            case "dead":
                text = f"the process of broker {event.broker} dies"
            case _ if before == "paused":
                text = f"broker {event.broker} is resumed"
            case _:  # starting and up: `on_broker_starting`
                return
        self._add(event.t, "broker", event.broker, text, event.seq)

    def on_broker_change(self, event: e.BrokerChange) -> None:
        for broker in event.deleted:
            text = f"controller {event.broker} finds broker {broker} dead"
            self._add(event.t, "broker", broker, text, event.seq)
        for broker in event.bounced:
            text = f"controller {event.broker} finds broker {broker} bounced"
            self._add(event.t, "broker", broker, text, event.seq)

    def on_isr_update_rejected(self, event: e.IsrUpdateRejected) -> None:
        text = (
            f"broker {event.broker} cannot {event.change} the ISR of {event.partition}: its cached"
            f" version {event.cached_zk_version} is not ZooKeeper's"
        )
        self._add(event.t, "rejected", event.broker, text, event.seq)

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        text = f"broker {event.broker} truncates {event.partition} to {event.to_offset}"
        if event.from_leo > event.to_offset:
            lost = event.from_leo - event.to_offset
            text += f": {lost} record{'s' * (lost != 1)}"
        self._add(event.t, "truncated", event.broker, text, event.seq)


def _list(isr: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, isr))}]"


def _stale(state: TraceState) -> Iterator[Stale]:
    """Episodes of stale metadata, in order of their start."""
    metadata, staleness, end_us = state.metadata, state.staleness, state.clock.now_us
    for name in sorted(metadata.history):
        for broker in staleness.brokers(name):
            for from_us, to_us in staleness.episodes(broker, name):
                shown = span_at(metadata.spans(broker, name), to_us - 1)
                newest = span_at(state.partitions.of(name).history, to_us - 1)
                if to_us - from_us >= STALE_FROM_US and shown is not None and newest is not None:
                    is_over = to_us < end_us or not staleness.is_stale(broker, name)
                    until = to_us if is_over else None
                    yield Stale(broker, name, from_us, until, shown.version, newest.version)


def _stuck(partitions: Partitions) -> Iterator[Stuck]:
    for name, partition in sorted(partitions.all.items()):
        state = partition.now
        if state is None or _is_healthy(partition, state):
            continue
        # The uninterrupted time until the end.
        since = partition.states[-1].from_us
        for earlier in reversed(partition.states):
            if _is_healthy(partition, earlier):
                break
            since = earlier.from_us
        yield Stuck(name, state.leader, state.isr, partition.replicas, since)


def _is_healthy(partition: Partition, state: State) -> bool:
    return state.leader >= 0 and not is_under_replicated(
        state.leader, state.isr, partition.replicas, partition.adding
    )
