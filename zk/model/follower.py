"""A server that lags: it applies what the leader committed a while later, and answers reads from
that.

Deliberately small: it replays the leader's commits in order, each `lag_us` after the leader. A
write or sync that came through it is answered when it has applied it; later requests of that
connection wait meanwhile, as those of one session do (CommitProcessor.java 3.5.9).
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
"""What the leader did to its tree and every follower does to its own."""


class Follower:
    """Its own copy of the tree, which holds the watches of the sessions that are connected to
    it."""

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
        """Apply `change` when it is due, then do `then`."""
        self._backlog.append((change, then))
        self._lane.call_later(self.lag_us, self._apply_next)

    @labelled("apply_next")
    def _apply_next(self) -> None:
        change, then = self._backlog.popleft()
        _, _, fired = change(self.tree)
        self._deliver(fired)
        # The answer after the watches: a client hears of a change before it can read it.
        if then is not None:
            then()


def nothing_to_apply(tree: Tree) -> Applied:
    """The commit of a sync: it only marks a place in the order."""
    return Reply(Code.OK), None, []
