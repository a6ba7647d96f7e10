"""A session that is over for its client while what it holds stays (ZOOKEEPER-2985)."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World


class EndSession(Action, frozen=True, tag="end_session"):
    """The server has ended the sessions of `broker` that it had forgotten: their ephemerals go."""

    broker: int

    def apply(self, world: World) -> None:
        world.zookeeper.end_session(self.broker)


class ForgetSession(Action, frozen=True, tag="forget_session"):
    """The session of `broker` is not known any more when its client reconnects, as after an
    election among ZooKeeper's servers; its ephemerals stay until the session is ended. The modelled
    server alone can do that."""

    broker: int

    def apply(self, world: World) -> None:
        world.zookeeper.forget_session(self.broker)

    def healed(self) -> Action:
        return EndSession(self.broker)
