"""Requests to ZooKeeper, replies, watch events: the words that every world speaks.

Small frozen structs, no behaviour. Paths are absolute inside the client's chroot. Data is bytes or
None (ZooKeeper keeps the difference between null and empty). Source: ZooKeeper 3.5 zookeeper.jute.
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
    """Create a znode; a sequential one gets ten digits from the parent's counter."""

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
    """Data and Stat; `watch` is set only when the znode exists."""

    path: str
    watch: bool = False


class GetChildren(msgspec.Struct, frozen=True, gc=False, tag="getChildren2"):
    """Names of the children and the parent's Stat (getChildren2); `watch` is a child watch."""

    path: str
    watch: bool = False


class GetChildrenNames(GetChildren, frozen=True, gc=False, tag="getChildren"):
    """The names alone, as ZkClient asks for them."""


class SetData(msgspec.Struct, frozen=True, gc=False, tag="setData"):
    """Write data if the data version is `version` (-1: any)."""

    path: str
    data: bytes | None
    version: int = -1


class Check(msgspec.Struct, frozen=True, gc=False, tag="check"):
    """Inside a multi: succeed only if the data version is `version` (-1: the znode exists)."""

    path: str
    version: int


class Sync(msgspec.Struct, frozen=True, gc=False, tag="sync"):
    """Bring the server that answers up to the leader."""

    path: str


Op = Create | Delete | SetData | Check


class Multi(msgspec.Struct, frozen=True, gc=False, tag="multi"):
    """All of the operations or none."""

    ops: tuple[Op, ...]


Request = Create | Delete | Exists | GetData | GetChildren | SetData | Sync | Multi


class OpResult(msgspec.Struct, frozen=True, gc=False):
    """One operation's part of a multi: after a roll-back OK before the failed one, its code there,
    RUNTIME_INCONSISTENCY behind it. `path` is the created path, `stat` that of a setData."""

    code: Code
    path: str = ""
    stat: Stat | None = None


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The answer to one request. Which of the fields are set follows from the request; for a Multi
    `code` is OK or that of the failed operation, and `results` has one entry per operation. `zxid`
    is the server's last."""

    code: Code
    zxid: int = 0
    path: str = ""
    data: bytes | None = None
    stat: Stat | None = None
    children: tuple[str, ...] = ()
    results: tuple[OpResult, ...] = ()


class EventType(Enum):
    """What a watch saw."""

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
    """One entry of a server's transaction log: what was applied, and in whose session.

    `op` is `create`, `setData`, `delete`, `check`, `multi` (its parts in `ops`), `createSession`,
    `closeSession` or `error` (with `code`). `version` is what the server logs: for setData the data
    version **after** the write, for check the expected version **plus one**. ZooKeeper 3.5 logs no
    paths of removed ephemerals with a closeSession; where they are known they are in `removed`.
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
