"""Every broker that started is registered in ZooKeeper, and known to every other."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class BrokersAreRegistered(Invariant):
    """Every broker that started is registered in ZooKeeper, and known to every other (L6)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        caches, znodes = self.facts.caches, self.facts.znodes.all
        every = tuple(sorted(caches.started))
        for broker in every:
            since = caches.started[broker]
            if f"/brokers/ids/{broker}" not in znodes:
                yield self.violation("it is not registered", -1, since, None, broker)
            live, seq = caches.live.get(broker, ((), -1))
            if live != every:
                text = f"it knows of brokers {list(live)}, there are {list(every)}"
                yield self.violation(text, since, seq, None, broker)
