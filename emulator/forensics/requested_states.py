"""Partition states from requests, where ZooKeeper's own log is missing.

A controller's request may contain a version whose write is in no leader's or controller's log. Each
such version is recorded once, at its first mention.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.forensics.assemble import BROKER_LOGS, Maker, Source
from emulator.trace import events as e
from emulator.trace.values import TopicPartition

WHY = "named in a request"
DECIDED = "named in a decision"


def requested_states(sources: Iterable[Source]) -> Source:
    """A `controller_cache_updated` of the request's sender, for each state without another
    source."""
    maker = Maker()
    newest: dict[TopicPartition, int] = {}
    decisions: dict[tuple[int, TopicPartition], e.IsrUpdateStarted] = {}
    events = sorted((one for source in sources for one in source.events), key=lambda one: one.t)
    for event in events:
        maker.at_us = event.t
        match event:
            case e.IsrUpdateStarted():
                decisions[event.broker, event.partition] = event
            case e.IsrUpdated() if event.zk_version > newest.get(event.partition, -1) + 1:
                # The leader logged its state before the decision.
                started = decisions.get((event.broker, event.partition))
                newest[event.partition] = event.zk_version
                if started is not None and started.from_isr:
                    maker.at_us = started.t
                    version = event.zk_version - 1
                    before = event.partition, event.broker, event.leader_epoch, started.from_isr
                    maker.emit(e.ControllerCacheUpdated, event.broker, *before, version, DECIDED)
            case e.IsrUpdated() | e.ControllerCacheUpdated():
                version = max(event.zk_version, newest.get(event.partition, -1))
                newest[event.partition] = version
            case e.LeaderAndIsr() | e.MetadataCacheUpdated():
                states = (event.state,) if isinstance(event, e.LeaderAndIsr) else event.states
                for state in states:
                    if state.zk_version > newest.get(state.partition, -1):
                        newest[state.partition] = state.zk_version
                        maker.emit(
                            e.ControllerCacheUpdated,
                            event.sender,
                            state.partition,
                            state.leader,
                            state.leader_epoch,
                            state.isr,
                            state.zk_version,
                            WHY,
                            state.replicas,
                            state.controller_epoch,
                        )
                for gone in getattr(event, "removed", ()):
                    newest.pop(gone, None)
    return Source(BROKER_LOGS, maker.events)
