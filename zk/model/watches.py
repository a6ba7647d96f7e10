"""One-shot watches per session, as the server stores them.

Like the real server (`WatchManager.java` 3.5.9) it has two tables: data watches, which include
`exists` watches, and child watches. Sessions are notified in the order in which they set their
watch. (The real server's order depends on object identities, so any order is valid.) A watch
belongs to a connection and ends with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from zk.ops import EventType, WatchedEvent

FiredWatches = list[tuple[int, WatchedEvent]]


class WatchTable:
    """One of the two tables: path -> sessions, and session -> paths."""

    __slots__ = ("_paths", "_sessions")

    def __init__(self) -> None:
        self._sessions: dict[str, dict[int, None]] = {}
        self._paths: dict[int, dict[str, None]] = {}

    def add(self, path: str, session: int) -> None:
        self._sessions.setdefault(path, {})[session] = None
        self._paths.setdefault(session, {})[path] = None

    def take(self, path: str) -> Iterable[int]:
        """Remove and return the sessions that watch `path`."""
        # One-shot: the watch is removed before its event is sent.
        sessions = self._sessions.pop(path, None)
        if sessions is None:
            return ()
        for session in sessions:
            del self._paths[session][path]
        return sessions

    def remove_session(self, session: int) -> None:
        for path in self._paths.pop(session, ()):
            watchers = self._sessions[path]
            del watchers[session]
            if not watchers:
                del self._sessions[path]

    def copy(self) -> WatchTable:
        twin = WatchTable()
        twin._sessions = {path: dict(sessions) for path, sessions in self._sessions.items()}
        twin._paths = {session: dict(paths) for session, paths in self._paths.items()}
        return twin


class Watches:
    """Both tables, and the events that a change fires (`DataTree.java` 3.5.9 createNode,
    deleteNode, setData)."""

    __slots__ = ("child", "data")

    def __init__(self, data: WatchTable | None = None, child: WatchTable | None = None) -> None:
        self.data = data or WatchTable()
        self.child = child or WatchTable()

    def created(self, path: str, parent: str, fired: FiredWatches) -> None:
        _fire(self.data.take(path), EventType.NODE_CREATED, path, fired)
        _fire(self.child.take(parent), EventType.NODE_CHILDREN_CHANGED, parent, fired)

    def changed(self, path: str, fired: FiredWatches) -> None:
        _fire(self.data.take(path), EventType.NODE_DATA_CHANGED, path, fired)

    def deleted(self, path: str, parent: str, fired: FiredWatches) -> None:
        """A session that watches both data and children of `path` gets one event for the
        deletion."""
        # DataTree.deleteNode passes the sessions already notified to the second table.
        notified = self.data.take(path)
        _fire(notified, EventType.NODE_DELETED, path, fired)
        others = [session for session in self.child.take(path) if session not in notified]
        _fire(others, EventType.NODE_DELETED, path, fired)
        _fire(self.child.take(parent), EventType.NODE_CHILDREN_CHANGED, parent, fired)

    def remove_session(self, session: int) -> None:
        self.data.remove_session(session)
        self.child.remove_session(session)

    def copy(self) -> Watches:
        return Watches(self.data.copy(), self.child.copy())


def _fire(sessions: Iterable[int], kind: EventType, path: str, fired: FiredWatches) -> None:
    for session in sessions:
        fired.append((session, WatchedEvent(kind, path)))
