"""A session that has ended for its client while its ephemeral znodes stay (ZOOKEEPER-2985)."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World


class EndSession(Action, frozen=True, tag="end_session"):
    """The server ends the forgotten sessions of `broker`, so their ephemeral znodes are deleted."""

    broker: int

    def apply(self, world: World) -> None:
        world.zookeeper.end_session(self.broker)


class ForgetSession(Action, frozen=True, tag="forget_session"):
    """The server no longer knows the session of `broker` when its client reconnects, as after a
    leader election among ZooKeeper's servers. Its ephemeral znodes stay until the session is ended.
    Only the modelled server supports this."""

    broker: int

    def apply(self, world: World) -> None:
        world.zookeeper.forget_session(self.broker)

    def healed(self) -> Action:
        return EndSession(self.broker)
