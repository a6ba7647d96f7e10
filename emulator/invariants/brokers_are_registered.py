"""Every started broker is registered in ZooKeeper and known to every other broker."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class Unregistered(Violation, frozen=True):
    sentence = "it is not registered"


class UnknownBrokers(Violation, frozen=True):
    """The brokers in a broker's metadata cache, and the started ones."""

    known: tuple[int, ...]
    started: tuple[int, ...]

    sentence = "its metadata has brokers {known}; brokers {started} have started"


class BrokersAreRegistered(Invariant):
    """Every broker that started is registered in ZooKeeper and known to every other broker
    (L6)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        caches, znodes = self.state.metadata, self.state.znodes
        every = tuple(sorted(caches.started))
        for broker in every:
            since = caches.started[broker]
            if not znodes.is_registered(broker):
                yield Unregistered(facts=(-1, since), broker=broker)
            live, seq = caches.live.get(broker, ((), -1))
            known = tuple(sorted(live))
            if known != every:
                yield UnknownBrokers(known, every, facts=(since, seq), broker=broker)
