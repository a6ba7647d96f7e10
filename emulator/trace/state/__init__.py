"""The state that a trace implies: one derivation, event by event, for everything that reads traces.

`TraceState` is a listener on the sink, and reads stored traces in the same way. Each of its parts
owns one concept. Most can be queried for any moment (`history`, `..._at`), the rest only for the
present. Summary, expectations, invariants, lanes, `isr why`, `describe`, `compare`, pages and
`report` read it; Spark's tables (`emulator.analysis`) are held equal to it by a test.

These definitions hold everywhere:

- Time 0 s is when the cluster was up. Each output uses one clock.
- A broker's *process* is starting, up, paused, stopping or dead, derived only from
  `ProcessStateChanged`.
- A *state* of a partition is a version of its state znode, from its write to the next one. An *ISR
  change* is a state with the same leader and leader epoch as the one before.
- A broker's *metadata* of a partition is *stale* while its process is alive (up or paused, since it
  got metadata) and its cache has a version that is older than ZooKeeper's. A dead broker's metadata
  is not stale, nor is that of a topic deleted from ZooKeeper. Sums continue across a broker's
  restarts and a topic's deletion. The *longest* is one episode, which may span several old
  versions.
- *Propagation* has two measures: from the leader's decision, and from the write (`propagation`).
- *Under-replicated*, *under* and *at min ISR*, *offline*: as Kafka's gauges count (`gauges`).
- *HW lag* is a leader's log end offset minus its high watermark, weighted by time: 25 s without
  progress are 25 s of lag (`water_levels`).
- The trace ends with its last event. Open intervals are counted up to that event.
- A value that a trace does not contain is unknown: None, `?` in texts, absent in JSON. Never 0 or
  -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.state.answers import Answers
from emulator.trace.state.caches import ControllerCache, MetadataCaches
from emulator.trace.state.clock import Clock
from emulator.trace.state.committed import Committed
from emulator.trace.state.counts import Counts
from emulator.trace.state.fetches import Fetches
from emulator.trace.state.gauges import Gauges
from emulator.trace.state.isr_updates import IsrUpdates
from emulator.trace.state.logs import Logs
from emulator.trace.state.notifications import Notifications
from emulator.trace.state.partitions import Partitions
from emulator.trace.state.processes import Processes
from emulator.trace.state.propagation import Propagation
from emulator.trace.state.records import Records
from emulator.trace.state.registrations import Registrations
from emulator.trace.state.replicas import Replicas
from emulator.trace.state.sessions import Sessions
from emulator.trace.state.staleness import Staleness
from emulator.trace.state.topics import Topics
from emulator.trace.state.water_levels import WaterLevels
from emulator.trace.state.znodes import Znodes
from emulator.trace.state.zookeeper_load import ZooKeeperLoad


class CoreState:
    """The parts that invariants read. There are few because searches over schedules run only these.
    Without `processes` they keep no histories."""

    def __init__(self, processes: Processes | None = None) -> None:
        self.partitions = Partitions()
        self.logs = Logs()
        self.metadata = MetadataCaches(self.partitions, processes)
        self.controller = ControllerCache(self.partitions, processes)
        self.replicas = Replicas()
        self.znodes = Znodes()
        self.committed = Committed(self.partitions, self.logs, self.replicas)

    @cached_property
    def parts(self) -> tuple[object, ...]:
        """All parts, in the order in which they must receive an event."""
        return tuple(vars(self).values())

    @cached_property
    def _dispatch(self) -> Dispatch:
        return Dispatch(self.parts)

    def __call__(self, event: AnyEvent) -> None:
        self._dispatch(event)


class TraceState(CoreState):
    """All parts of one run. `settings` are the cluster's, `brokers` those that boot. Without
    `level_histories` only the current log end offsets and high watermarks are kept: their history
    is the only one that grows with every record."""

    def __init__(
        self,
        brokers: Iterable[int] = (),
        settings: Mapping[str, str] | None = None,
        *,
        level_histories: bool = True,
    ) -> None:
        self.processes = Processes()
        super().__init__(self.processes)
        self.clock = Clock(frozenset(brokers))
        self.gauges = Gauges(self.partitions, settings or {})
        self.isr_updates = IsrUpdates()
        self.notifications = Notifications()
        self.water_levels = WaterLevels(self.processes, histories=level_histories)
        self.records = Records(self.logs, self.partitions)
        self.answers = Answers()
        self.fetches = Fetches(self.logs, self.replicas, self.processes)
        self.topics = Topics()
        self.sessions = Sessions()
        self.registrations = Registrations(self.processes)
        self.counts = Counts(self.partitions)
        self.zookeeper_load = ZooKeeperLoad()
        self.staleness = Staleness(self.partitions, self.metadata, self.clock)
        self.propagation = Propagation(
            self.partitions, self.metadata, self.controller, self.isr_updates, self.processes
        )

    def __call__(self, event: AnyEvent) -> None:
        self.clock.now_us = event.t
        self.counts.events += 1
        self._dispatch(event)
