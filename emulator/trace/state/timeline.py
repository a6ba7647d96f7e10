"""A whole trace in the order of time, with its account: lanes, `isr why` and the pages read it."""

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
    """Events may be given in any order; equal times keep the order of their `seq`. `is_over`: the
    run goes on no more; what has not come about by then never will."""

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
        """All that any event is of."""
        return tuple(sorted({event.broker for event in self.events if event.broker > 0}))

    @cached_property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Those that ever had a state."""
        return tuple(sorted(name for name, one in self.state.partitions.all.items() if one.history))

    def states(self, partition: TopicPartition) -> list[State]:
        """What ZooKeeper had, version by version."""
        known = self.state.partitions.all.get(partition)
        return known.history if known is not None else []

    def attempts(self, partition: TopicPartition) -> list[Attempt]:
        """Tries of leaders to change the ISR."""
        return self.state.isr_updates.attempts.get(partition, [])

    def until(self, span: Known) -> int:
        """When it ended, or the trace did."""
        return min(span.to_us, self.end_us)

    def zookeeper_state_at(self, partition: TopicPartition, at_us: int) -> State | None:
        """What ZooKeeper had at `at_us`; None where there is no znode."""
        return span_at(self.states(partition), at_us)

    def state_at(self, at_us: int) -> TraceState:
        """The account when everything of `at_us` had happened."""
        if at_us >= self.end_us:
            return self.state
        state = TraceState()
        for event in self.events:
            if event.t > at_us:
                break
            state(event)
        return state
