"""A whole trace in order of time, with its state. Lanes, `isr why` and the pages read it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from emulator.trace.events import AnyEvent
from emulator.trace.state import TraceState
from emulator.trace.state.isr_updates import Attempt
from emulator.trace.state.partitions import State
from emulator.trace.state.spans import Known, span_at
from emulator.trace.values import TopicPartition


class Timeline:
    """Events may be passed in any order; events with equal times are ordered by `seq`. `is_over`:
    the run has ended, so what is still pending will never happen."""

    def __init__(self, events: Iterable[AnyEvent], *, is_over: bool = True) -> None:
        self.events = sorted(events, key=lambda event: (event.t, event.seq))
        self.is_over = is_over
        self.state = TraceState()
        for event in self.events:
            self.state(event)
        self.end_us = self.events[-1].t if self.events else 0
        first_us = self.events[0].t if self.events else 0
        up_us = self.state.clock.up_us
        self.origin_us = first_us if up_us is None else up_us

    @cached_property
    def brokers(self) -> tuple[int, ...]:
        """Every broker that occurs in an event."""
        return tuple(sorted({event.broker for event in self.events if event.broker > 0}))

    @cached_property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Every partition that ever had a state."""
        return tuple(sorted(name for name, one in self.state.partitions.all.items() if one.history))

    def states(self, partition: TopicPartition) -> list[State]:
        """The partition's states in ZooKeeper, version by version."""
        known = self.state.partitions.all.get(partition)
        return known.history if known is not None else []

    def attempts(self, partition: TopicPartition) -> list[Attempt]:
        """Leaders' attempts to change the ISR."""
        return self.state.isr_updates.attempts.get(partition, [])

    def until(self, span: Known) -> int:
        """The end of the span, or of the trace if it is open."""
        return min(span.to_us, self.end_us)

    def zookeeper_state_at(self, partition: TopicPartition, at_us: int) -> State | None:
        """ZooKeeper's state at `at_us`; None if the znode does not exist."""
        return span_at(self.states(partition), at_us)

    def state_at(self, at_us: int) -> TraceState:
        """The state after all events of `at_us`."""
        if at_us >= self.end_us:
            return self.state
        state = TraceState()
        for event in self.events:
            if event.t > at_us:
                break
            state(event)
        return state
