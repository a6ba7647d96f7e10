"""What no real ZooKeeper server can be told to do with a session.

Owns the refusal, for worlds whose server is real; `isr run` says the same before anything starts.
"""

from __future__ import annotations

from emulator.scenario.errors import UserError


class RealSessions:
    """The part of a cluster's surroundings that only a modelled server has."""

    def forget_session(self, client: str) -> None:
        raise UserError("forget_session: a real ZooKeeper server ends a session with all it holds")

    def end_session(self, client: str) -> None:
        raise UserError("end_session: a real ZooKeeper server forgets no session by halves")
