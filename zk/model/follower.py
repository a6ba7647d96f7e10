"""A lagging server: it applies the leader's commits later and responds to reads from that state.

It replays the leader's commits in order, each `lag_us` later. A write or sync through this server
gets its response after this server has applied it. Later requests of that session wait meanwhile
(CommitProcessor.java 3.5.9).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from zk.errors import Code
from zk.model.tree import Applied, Tree
from zk.model.watches import FiredWatches
from zk.ops import Reply
from zk.wire import Lane, labelled

Change = Callable[[Tree], Applied]
"""A change that the leader applied to its tree and that followers apply to theirs."""


class Follower:
    """A copy of the tree, with the watches of the sessions connected to this server."""

    __slots__ = ("_backlog", "_deliver", "_lane", "lag_us", "tree")

    def __init__(
        self, tree: Tree, lag_us: int, lane: Lane, deliver: Callable[[FiredWatches], None]
    ) -> None:
        self.tree = tree
        self.lag_us = lag_us
        self._lane = lane
        self._deliver = deliver
        self._backlog: deque[tuple[Change, Callable[[], None] | None]] = deque()

    def commit(self, change: Change, then: Callable[[], None] | None = None) -> None:
        """Apply `change` after the lag, then call `then`."""
        self._backlog.append((change, then))
        self._lane.call_later(self.lag_us, self._apply_next)

    @labelled("apply_next")
    def _apply_next(self) -> None:
        change, then = self._backlog.popleft()
        _, _, fired = change(self.tree)
        self._deliver(fired)
        # Watch events before the response: a client sees the event before it can read the change.
        if then is not None:
            then()


def nothing_to_apply(tree: Tree) -> Applied:
    """The commit of a sync: it only marks a position in the order."""
    return Reply(Code.OK), None, []
