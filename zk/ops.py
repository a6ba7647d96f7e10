"""Requests to ZooKeeper, responses and watch events, as all worlds use them.

Small frozen structs, no behaviour. Paths are absolute within the client's chroot. Data is bytes or
None (ZooKeeper distinguishes null from empty). Source: ZooKeeper 3.5 zookeeper.jute.
"""

from __future__ import annotations

from enum import Enum, IntEnum

import msgspec

from zk.errors import Code


class CreateMode(IntEnum):
    """ZooKeeper's create flags."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3

    @property
    def ephemeral(self) -> bool:
        return bool(self.value & 1)

    @property
    def sequential(self) -> bool:
        return bool(self.value & 2)


class Stat(msgspec.Struct, frozen=True, gc=False):
    """A znode's metadata, with ZooKeeper's names in snake_case; times are wall-clock
    milliseconds."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Create(msgspec.Struct, frozen=True, gc=False, tag="create"):
    """Create a znode; a sequential name gets ten digits from the parent's counter."""

    path: str
    data: bytes | None
    mode: CreateMode = CreateMode.PERSISTENT


class Delete(msgspec.Struct, frozen=True, gc=False, tag="delete"):
    """Delete a znode if its data version is `version` (-1: any)."""

    path: str
    version: int = -1


class Exists(msgspec.Struct, frozen=True, gc=False, tag="exists"):
    """The znode's Stat, or NO_NODE; `watch` is set in both cases."""

    path: str
    watch: bool = False


class GetData(msgspec.Struct, frozen=True, gc=False, tag="getData"):
    """Data and Stat; `watch` is set only if the znode exists."""

    path: str
    watch: bool = False


class GetChildren(msgspec.Struct, frozen=True, gc=False, tag="getChildren2"):
    """Names of the children and the parent's Stat (getChildren2); `watch` is a child watch."""

    path: str
    watch: bool = False


class GetChildrenNames(GetChildren, frozen=True, gc=False, tag="getChildren"):
    """Only the names, as ZkClient requests them."""


class SetData(msgspec.Struct, frozen=True, gc=False, tag="setData"):
    """Write data if the data version is `version` (-1: any)."""

    path: str
    data: bytes | None
    version: int = -1


class Check(msgspec.Struct, frozen=True, gc=False, tag="check"):
    """In a multi: succeed only if the data version is `version` (-1: the znode exists)."""

    path: str
    version: int


class Sync(msgspec.Struct, frozen=True, gc=False, tag="sync"):
    """Make the server of this connection catch up with the leader."""

    path: str


Op = Create | Delete | SetData | Check


class Multi(msgspec.Struct, frozen=True, gc=False, tag="multi"):
    """All of the operations, or none."""

    ops: tuple[Op, ...]


Request = Create | Delete | Exists | GetData | GetChildren | SetData | Sync | Multi


class OpResult(msgspec.Struct, frozen=True, gc=False):
    """One operation's result in a multi. After a rollback: OK before the failed operation, its own
    code, RUNTIME_INCONSISTENCY after it. `path` is the created path, `stat` belongs to a setData.
    """

    code: Code
    path: str = ""
    stat: Stat | None = None


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The response to one request; the request determines which fields are set. For a Multi `code`
    is OK or the code of the failed operation, and `results` has one entry per operation. `zxid` is
    the server's last one.
    """

    code: Code
    zxid: int = 0
    path: str = ""
    data: bytes | None = None
    stat: Stat | None = None
    children: tuple[str, ...] = ()
    results: tuple[OpResult, ...] = ()


class EventType(Enum):
    """The kind of change that fired a watch."""

    NODE_CREATED = "NodeCreated"
    NODE_DELETED = "NodeDeleted"
    NODE_DATA_CHANGED = "NodeDataChanged"
    NODE_CHILDREN_CHANGED = "NodeChildrenChanged"


class WatchedEvent(msgspec.Struct, frozen=True, gc=False):
    """A fired watch."""

    type: EventType
    path: str


class SessionState(Enum):
    """The client's view of its session (Watcher.Event.KeeperState)."""

    CONNECTED = "SyncConnected"
    DISCONNECTED = "Disconnected"
    EXPIRED = "Expired"
    AUTH_FAILED = "AuthFailed"
    CLOSED = "Closed"


def name_of(request: Request | Op) -> str:
    """ZooKeeper's name of the operation: `create`, `getChildren2`, `multi` ..."""
    return str(type(request).__struct_config__.tag)


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """One entry of a server's transaction log: the change and its session.

    `op` is `create`, `setData`, `delete`, `check`, `multi` (its parts in `ops`), `createSession`,
    `closeSession` or `error` (with `code`). `version` is what the server logs: for setData the data
    version **after** the write, for check the expected version **plus one**. ZooKeeper 3.5 does not
    log the paths of the ephemerals that a closeSession removes; where they are known they are in
    `removed`.
    """

    zxid: int
    session_id: int
    op: str
    path: str = ""
    data: bytes | None = None
    version: int | None = None
    ephemeral: bool = False
    ops: tuple[Transaction, ...] = ()
    code: int = 0
    timeout_ms: int = 0
    removed: tuple[str, ...] = ()
