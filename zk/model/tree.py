"""The znodes of a ZooKeeper server and the effect of requests: pure and copyable, without a clock.

`Tree.apply` responds like a real server 3.5-3.9: result codes and their precedence, versions,
sequential names, results of each operation of a failed multi, fired watches in order, and the log
entry. A failed write takes a zxid and is logged too: alone as `error`, a multi with its parts
(`PrepRequestProcessor.java`, `DataTree.java` 3.5.9). `zk.model.ensemble` decides when sessions end.
"""

from __future__ import annotations

import re

from zk.errors import Code
from zk.model.watches import FiredWatches, Watches
from zk.ops import (
    Create,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Op,
    OpResult,
    Reply,
    Request,
    SetData,
    Stat,
    Sync,
    Transaction,
    WatchedEvent,
)
from zk.paths import parent as parent_of
from zk.scala.java_hash import hash_set_clone_order, java_hash, spread

Applied = tuple[Reply, Transaction | None, FiredWatches]

SPECIAL_PATHS = ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
READ_ONLY_PATH = "/zookeeper/config"

# PathUtils.java 3.5.9 validatePath: empty and relative names, and characters that are not allowed.
_INVALID = re.compile("//|/\\.{1,2}(/|$)|[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
_NO_FIRED: FiredWatches = []


class Failure(Exception):
    """An operation's result code; used in this module only."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


class ZNode:
    """One znode. `creations` is the number of children ever created; it numbers sequential
    names."""

    __slots__ = (
        "buckets",
        "children",
        "creations",
        "ctime",
        "czxid",
        "data",
        "ephemeral_owner",
        "listed",
        "mtime",
        "mzxid",
        "pzxid",
        "version",
    )

    def __init__(self, data: bytes | None, zxid: int, now_ms: int, ephemeral_owner: int) -> None:
        self.data = data
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime = self.mtime = now_ms
        self.version = 0
        self.creations = 0
        self.ephemeral_owner = ephemeral_owner
        self.children: dict[str, int] = {}
        self.buckets = 8
        self.listed: tuple[str, ...] | None = ()

    def stat(self) -> Stat:
        children = len(self.children)
        return Stat(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            # DataNode.copyStat: each creation and each deletion of a child counts once.
            2 * self.creations - children,
            0,
            self.ephemeral_owner,
            len(self.data) if self.data is not None else 0,
            children,
            self.pzxid,
        )

    def add_child(self, name: str) -> None:
        self.children[name] = spread(java_hash(name))
        # DataNode.addChild creates a HashSet of 8 buckets; a HashSet doubles above three quarters.
        if len(self.children) > self.buckets * 3 // 4:
            self.buckets *= 2
        self.listed = None

    def remove_child(self, name: str) -> None:
        del self.children[name]
        self.listed = None

    def list_children(self) -> tuple[str, ...]:
        """The children in the order of Java's HashSet, whose table never shrinks."""
        if self.listed is None:
            mask = self.buckets - 1
            hashes = self.children
            self.listed = tuple(sorted(hashes, key=lambda name: hashes[name] & mask))
        return self.listed

    def copy(self) -> ZNode:
        twin = ZNode(self.data, self.czxid, self.ctime, self.ephemeral_owner)
        twin.mzxid, twin.pzxid, twin.mtime = self.mzxid, self.pzxid, self.mtime
        twin.version, twin.creations = self.version, self.creations
        twin.children, twin.buckets = dict(self.children), self.buckets
        twin.listed = self.listed
        return twin


class Tree:
    """All znodes of one server, its sessions, their ephemerals and watches; `zxid` is the last
    one."""

    __slots__ = ("_nodes", "_undo", "ephemerals", "sessions", "watches", "zxid")

    def __init__(self) -> None:
        self.zxid = 0
        self.sessions: dict[int, int] = {}
        self.ephemerals: dict[int, dict[str, None]] = {}
        self.watches = Watches()
        self._nodes: dict[str, ZNode] = {path: ZNode(b"", 0, 0, 0) for path in SPECIAL_PATHS}
        self._nodes["/"].add_child("zookeeper")
        self._nodes["/zookeeper"].add_child("config")
        self._nodes["/zookeeper"].add_child("quota")
        self._undo: dict[str, ZNode | None] | None = None

    def copy(self) -> Tree:
        """A copy that shares nothing mutable."""
        assert self._undo is None, "copied in the middle of a multi"
        twin = Tree()
        twin.zxid = self.zxid
        twin.sessions = dict(self.sessions)
        twin.ephemerals = {session: dict(paths) for session, paths in self.ephemerals.items()}
        twin.watches = self.watches.copy()
        twin._nodes = {path: node.copy() for path, node in self._nodes.items()}
        return twin

    def __deepcopy__(self, memo: dict[int, object]) -> Tree:
        return self.copy()

    # -- inspection

    def node(self, path: str) -> ZNode | None:
        """The znode itself, for inspection only."""
        return self._nodes.get(path or "/")

    def paths(self) -> list[str]:
        """All paths, sorted, including the server's own."""
        return sorted(self._nodes)

    # -- requests

    def apply(self, request: Request, session: int, now_ms: int) -> Applied:
        """Apply `request` in `session` at wall-clock time `now_ms`.

        Returns the response, the log entry (None for reads) and the fired watches in order.
        """
        if isinstance(request, (Exists, GetData, GetChildren, Sync)):
            return self._read(request, session), None, _NO_FIRED
        if isinstance(request, Multi):
            return self._apply_multi(request, session, now_ms)
        # PrepRequestProcessor takes the zxid before it checks anything: a failed write has one too.
        self.zxid = zxid = self.zxid + 1
        try:
            self._check_session(session)
            result, logged = self._change(request, session, now_ms)
        except Failure as failure:
            error = Transaction(zxid, session, "error", code=int(failure.code))
            return Reply(failure.code, zxid), error, _NO_FIRED
        fired: FiredWatches = []
        self._fire(logged, fired)
        return Reply(Code.OK, zxid, result.path, None, result.stat), logged, fired

    def _apply_multi(self, request: Multi, session: int, now_ms: int) -> Applied:
        self.zxid = zxid = self.zxid + 1
        results: list[OpResult] = []
        logged: list[Transaction] = []
        code = Code.OK
        # `_remember` stores each znode here before its first change, for the rollback.
        self._undo = {}
        for op in request.ops:
            if code is not Code.OK:
                # Operations after the failed one are not tried.
                skipped = Code.RUNTIME_INCONSISTENCY
                results.append(OpResult(skipped))
                logged.append(Transaction(zxid, session, "error", code=int(skipped)))
                continue
            try:
                self._check_session(session)
                result, transaction = self._change(op, session, now_ms)
            except Failure as failure:
                code = failure.code
                # For operations that were rolled back the server returns OK, without paths or
                # Stats.
                results = [OpResult(Code.OK) for _ in results]
                result = OpResult(code)
                transaction = Transaction(zxid, session, "error", code=int(code))
            results.append(result)
            logged.append(transaction)
        undo, self._undo = self._undo, None
        fired: FiredWatches = []
        if code is Code.OK:
            # Only now: no session may see an event of a change that is rolled back.
            for part in logged:
                self._fire(part, fired)
        else:
            for path, before in undo.items():
                now = self._nodes.pop(path, None)
                if now is not None and now.ephemeral_owner:
                    self.ephemerals[now.ephemeral_owner].pop(path, None)
                if before is not None:
                    self._nodes[path] = before
                    if before.ephemeral_owner:
                        self.ephemerals.setdefault(before.ephemeral_owner, {})[path] = None
        whole = Transaction(zxid, session, "multi", ops=tuple(logged))
        return Reply(code, zxid, results=tuple(results)), whole, fired

    def _fire(self, change: Transaction, fired: FiredWatches) -> None:
        """Collect the watches that one change fires."""
        if change.op == "setData":
            self.watches.changed(change.path, fired)
        elif change.op == "create":
            self.watches.created(change.path, parent_of(change.path), fired)
        elif change.op == "delete":
            self.watches.deleted(change.path, parent_of(change.path), fired)

    # -- changes

    def _change(self, op: Op, session: int, now_ms: int) -> tuple[OpResult, Transaction]:
        if isinstance(op, SetData):
            return self._set_data(op, session, now_ms)
        if isinstance(op, Create):
            return self._create(op, session, now_ms)
        if isinstance(op, Delete):
            return self._delete(op, session)
        node = self._named(op.path)
        _expect(node, op.version)
        # The log entry of a check has the expected version plus one.
        logged = Transaction(self.zxid, session, "check", op.path, None, node.version + 1)
        return OpResult(Code.OK), logged

    def _set_data(self, op: SetData, session: int, now_ms: int) -> tuple[OpResult, Transaction]:
        path = op.path
        node = self._named(path)
        if path == READ_ONLY_PATH:
            raise Failure(Code.NO_AUTH)
        _expect(node, op.version)
        if self._undo is not None:
            self._remember(path)
        node.data = op.data
        node.version += 1
        node.mzxid, node.mtime = self.zxid, now_ms
        logged = Transaction(self.zxid, session, "setData", path, op.data, node.version)
        return OpResult(Code.OK, stat=node.stat()), logged

    def _create(self, op: Create, session: int, now_ms: int) -> tuple[OpResult, Transaction]:
        """PrepRequestProcessor.pRequest2TxnCreate: the order of the checks decides the error code
        of a request with two faults."""
        path, mode = op.path, op.mode
        if "/" not in path or "\0" in path:
            raise Failure(Code.BAD_ARGUMENTS)
        parent_path = parent_of(path)
        parent = self._existing(parent_path)
        if parent_path == READ_ONLY_PATH:
            raise Failure(Code.NO_AUTH)
        if mode.sequential:
            path = f"{path}{parent.creations:010d}"
        # Validated with its number: `/a/` is a legal prefix of a sequential name.
        validate(path)
        if path in self._nodes:
            raise Failure(Code.NODE_EXISTS)
        if parent.ephemeral_owner:
            raise Failure(Code.NO_CHILDREN_FOR_EPHEMERALS)
        if self._undo is not None:
            self._remember(path)
            self._remember(parent_path)
        self._nodes[path] = ZNode(op.data, self.zxid, now_ms, session if mode.ephemeral else 0)
        if mode.ephemeral:
            self.ephemerals.setdefault(session, {})[path] = None
        parent.add_child(path[path.rfind("/") + 1 :])
        # Deletions do not lower it: a sequence number is never used twice.
        parent.creations += 1
        parent.pzxid = self.zxid
        logged = Transaction(self.zxid, session, "create", path, op.data, None, mode.ephemeral)
        return OpResult(Code.OK, path), logged

    def _delete(self, op: Delete, session: int) -> tuple[OpResult, Transaction]:
        path = op.path
        if "/" not in path or "\0" in path or path in SPECIAL_PATHS:
            raise Failure(Code.BAD_ARGUMENTS)
        parent_path = parent_of(path)
        self._existing(parent_path)
        if parent_path == READ_ONLY_PATH:
            raise Failure(Code.NO_AUTH)
        node = self._existing(path)
        _expect(node, op.version)
        # The version is checked before the children, as in PrepRequestProcessor.
        if node.children:
            raise Failure(Code.NOT_EMPTY)
        if self._undo is not None:
            self._remember(path)
            self._remember(parent_path)
        self._remove(path, parent_path)
        return OpResult(Code.OK), Transaction(self.zxid, session, "delete", path)

    def _remove(self, path: str, parent_path: str) -> None:
        node = self._nodes.pop(path)
        if node.ephemeral_owner:
            self.ephemerals[node.ephemeral_owner].pop(path)
        parent = self._nodes[parent_path]
        parent.remove_child(path[path.rfind("/") + 1 :])
        parent.pzxid = self.zxid

    def _remember(self, path: str) -> None:
        """Store the znode (or its absence) as it was before this multi."""
        assert self._undo is not None
        if path not in self._undo:
            node = self._nodes.get(path)
            self._undo[path] = None if node is None else node.copy()

    # -- reads

    def _read(self, request: Exists | GetData | GetChildren | Sync, session: int) -> Reply:
        if session not in self.sessions:
            return Reply(Code.SESSION_EXPIRED, self.zxid)
        path = request.path
        if isinstance(request, Sync):
            return Reply(Code.OK, self.zxid, path)
        node = self._nodes.get(path or "/")
        if isinstance(request, Exists):
            if "\0" in path:
                return Reply(Code.BAD_ARGUMENTS, self.zxid)
            # `exists` on an absent znode sets a watch too: it waits for the creation.
            if request.watch:
                self.watches.data.add(path, session)
            if node is None:
                return Reply(Code.NO_NODE, self.zxid)
            return Reply(Code.OK, self.zxid, stat=node.stat())
        if node is None:
            return Reply(Code.NO_NODE, self.zxid)
        if isinstance(request, GetData):
            if request.watch:
                self.watches.data.add(path, session)
            return Reply(Code.OK, self.zxid, data=node.data, stat=node.stat())
        if request.watch:
            self.watches.child.add(path, session)
        return Reply(Code.OK, self.zxid, stat=node.stat(), children=node.list_children())

    # -- sessions

    def create_session(self, session: int, timeout_ms: int) -> Applied:
        self.zxid += 1
        self.sessions[session] = timeout_ms
        logged = Transaction(self.zxid, session, "createSession", timeout_ms=timeout_ms)
        return Reply(Code.OK, self.zxid), logged, _NO_FIRED

    def close_session(self, session: int) -> Applied:
        """Remove the session and its ephemerals in one transaction; then their watches fire.

        The session's own watches fire too (it still has its connection) and are removed afterwards.
        """
        self.zxid += 1
        self.sessions.pop(session, None)
        # The order in which a clone of Java's HashSet lists them (DataTree.killSession).
        removed = tuple(hash_set_clone_order(self.ephemerals.get(session, ())))
        fired: FiredWatches = []
        for path in removed:
            parent_path = parent_of(path)
            self._remove(path, parent_path)
            self.watches.deleted(path, parent_path, fired)
        self.ephemerals.pop(session, None)
        self.watches.remove_session(session)
        logged = Transaction(self.zxid, session, "closeSession", removed=removed)
        return Reply(Code.OK, self.zxid), logged, fired

    def set_watches(
        self,
        session: int,
        zxid: int,
        data: tuple[str, ...],
        exist: tuple[str, ...],
        child: tuple[str, ...],
    ) -> FiredWatches:
        """Set the watches of a client that has seen everything up to `zxid`. Those that missed a
        change fire at once (`DataTree.java` 3.5.9 setWatches)."""
        missed: FiredWatches = []
        for path in data:
            node = self._nodes.get(path)
            if node is None:
                missed.append((session, WatchedEvent(EventType.NODE_DELETED, path)))
            elif node.mzxid > zxid:
                missed.append((session, WatchedEvent(EventType.NODE_DATA_CHANGED, path)))
            else:
                self.watches.data.add(path, session)
        for path in exist:
            # A znode that was created and deleted meanwhile leaves no trace: the client never
            # learns of it.
            if path in self._nodes:
                missed.append((session, WatchedEvent(EventType.NODE_CREATED, path)))
            else:
                self.watches.data.add(path, session)
        for path in child:
            node = self._nodes.get(path)
            if node is None:
                missed.append((session, WatchedEvent(EventType.NODE_DELETED, path)))
            elif node.pzxid > zxid:
                missed.append((session, WatchedEvent(EventType.NODE_CHILDREN_CHANGED, path)))
            else:
                self.watches.child.add(path, session)
        return missed

    # -- conditions

    def _check_session(self, session: int) -> None:
        if session not in self.sessions:
            raise Failure(Code.SESSION_EXPIRED)

    def _named(self, path: str) -> ZNode:
        """As `_existing`, but an invalid path has its own error code."""
        node = self._nodes.get(path)
        if node is None:
            validate(path)
            raise Failure(Code.NO_NODE)
        return node

    def _existing(self, path: str) -> ZNode:
        node = self._nodes.get(path)
        if node is None:
            raise Failure(Code.NO_NODE)
        return node


def _expect(node: ZNode, version: int) -> None:
    if version not in (-1, node.version):
        raise Failure(Code.BAD_VERSION)


def validate(path: str) -> None:
    """Reject the paths that PathUtils.validatePath rejects, with BAD_ARGUMENTS."""
    if path == "/":
        return
    if path[:1] != "/" or path[-1] == "/" or _INVALID.search(path):
        raise Failure(Code.BAD_ARGUMENTS)
