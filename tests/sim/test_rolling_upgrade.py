"""Three brokers upgraded from 2.6 to 2.7, broker by broker: leaders that write the ISR themselves
and leaders that ask, at the same time. What comes of it is expected in the shipped scenario."""

from __future__ import annotations

from emulator.runs.play import PlayOptions, play
from emulator.trace import events
from emulator.trace.sink import Sink
from tests.sim.shipped_runs import scenario


def test_leaders_of_both_kinds_were_there_at_the_same_time() -> None:
    sink = Sink()
    play(scenario("rolling-upgrade"), PlayOptions(seed=1), sink)
    begun = [e for e in sink.events if isinstance(e, events.IsrUpdateStarted)]
    asked = {e.cause for e in sink.events if isinstance(e, events.AlterIsrProposed)}
    first = min(e.t for e in begun if e.seq in asked)
    assert [e for e in begun if e.seq not in asked and e.t > first]
