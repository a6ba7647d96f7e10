"""A broker's ZooKeeper client that cannot authenticate when it connects, where that is optional."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World


class FailAuthentication(Action, frozen=True, tag="fail_authentication"):
    """The ZooKeeper client of `broker` is told that it could not authenticate (AuthFailed), as
    after a reconnection without credentials: SASL is optional, its session goes on. What Kafka
    makes of it is its healing."""

    broker: int

    def apply(self, world: World) -> None:
        world.hosts[self.broker].fail_authentication()
