"""ZooKeeper's result codes, and a small tree of exceptions.

A result code is an outcome: responses carry it, nothing raises it. Exceptions are for what ends a
call altogether (an expired session, a malformed znode). Source:
org.apache.zookeeper.KeeperException.Code, ZooKeeper 3.5.
"""

from enum import IntEnum


class Code(IntEnum):
    """Result codes by ZooKeeper's numbers."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    CONNECTION_LOSS = -4
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    OPERATION_TIMEOUT = -7
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_CALLBACK = -113
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NOT_READONLY = -119


class ZooKeeperError(Exception):
    """An error that ends a ZooKeeper call; `code` is ZooKeeper's result code."""

    def __init__(self, code: Code, path: str = "") -> None:
        super().__init__(f"{code.name} for {path}" if path else code.name)
        self.code = code
        self.path = path


class SessionExpired(ZooKeeperError):
    """The session expired while a request waited for its connection
    (ZooKeeperClientExpiredException)."""

    def __init__(self, path: str = "") -> None:
        super().__init__(Code.SESSION_EXPIRED, path)


class AuthFailed(ZooKeeperError):
    """The server rejected the credentials (ZooKeeperClientAuthFailedException)."""

    def __init__(self, path: str = "") -> None:
        super().__init__(Code.AUTH_FAILED, path)


class ControllerMoved(Exception):
    """The check of `/controller_epoch` failed: a newer controller exists
    (ControllerMovedException)."""


class MalformedZNode(Exception):
    """A znode's data does not have the expected format; names path and field."""

    def __init__(self, path: str, field: str, problem: str) -> None:
        super().__init__(f"{path}: {field}: {problem}" if field else f"{path}: {problem}")
        self.path, self.field, self.problem = path, field, problem
