"""One trace of many sources: times since the beginning, in order, numbered."""

from __future__ import annotations

from emulator.forensics.assemble import BROKER_LOGS, CLIENT_RESULTS, Maker, Source, assemble
from emulator.trace import events
from emulator.trace.values import TopicPartition

BEGAN_US = 1_000_000


def test_a_producers_times_count_from_the_beginning_like_all_others() -> None:
    clients, logs = Maker(), Maker()
    clients.at_us = BEGAN_US + 30_000
    results = ("producer", TopicPartition("t", 0), "all", "ok", 7, 2)
    clients.emit(events.RecordsProduced, 0, *results, BEGAN_US + 10_000, BEGAN_US + 40_000)
    logs.at_us = BEGAN_US + 30_900  # the same millisecond: a broker's line is before a result
    logs.emit(events.BrokerStarted, 1)

    started, produced = assemble(
        [Source(CLIENT_RESULTS, clients.events), Source(BROKER_LOGS, logs.events)], BEGAN_US
    )

    assert (started.kind, started.seq, started.t) == ("broker_started", 0, 30_900)
    assert isinstance(produced, events.RecordsProduced)
    assert (produced.seq, produced.t) == (1, 30_000)
    assert (produced.handed_over, produced.polled_at) == (10_000, 40_000)
