"""Three brokers upgraded from 2.6 to 2.7, broker by broker: leaders that write the ISR themselves
and leaders that ask, under controllers of either kind; and everything converges.

The story is in `rolling-upgrade.yaml`, for `isr run` as well. It is no shipped scenario: each of
its stops is needed by the start behind it, not by an expectation.
"""

from __future__ import annotations

from pathlib import Path

from emulator.profiles.base import profiles
from emulator.runtime.play import PlayOptions, play
from emulator.scenario.expectations.base import Judge
from emulator.scenario.load import load
from emulator.scenario.observed import Observed
from emulator.trace import events
from emulator.trace.sink import Sink

FILE = Path(__file__).with_name("rolling-upgrade.yaml")


def test_it_converges_and_both_kinds_of_leaders_were_there() -> None:
    loaded = load(FILE)
    settings = {**profiles()[loaded.profile].defaults, **loaded.settings}
    observed = Observed([boot.broker for boot in loaded.boots], settings)
    judge, sink = Judge(loaded.expectations, observed), Sink()
    sink.listen(observed)
    sink.listen(judge)
    play(loaded, PlayOptions(seed=1), sink)
    missed = {e.text: found.seen for e, found in judge.findings() if not found.held}
    assert not missed
    begun = [e for e in sink.events if isinstance(e, events.IsrUpdateStarted)]
    asked = {e.cause for e in sink.events if isinstance(e, events.AlterIsrProposed)}
    first = min(e.t for e in begun if e.seq in asked)
    assert [e for e in begun if e.seq not in asked and e.t > first]
