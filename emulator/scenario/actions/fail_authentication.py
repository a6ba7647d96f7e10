"""A broker's ZooKeeper client whose optional authentication fails."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World


class FailAuthentication(Action, frozen=True, tag="fail_authentication"):
    """The ZooKeeper client of `broker` reports that authentication failed (AuthFailed), as after a
    reconnection without credentials. SASL is optional: the session continues. Kafka recovers on its
    own."""

    broker: int

    def apply(self, world: World) -> None:
        world.hosts[self.broker].fail_authentication()
