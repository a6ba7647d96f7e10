"""Requests to ZooKeeper as Kafka makes them: retried within a session, fenced, recursive.

`kafka_zk_client` builds its operations from these. Result codes are outcomes; ZooKeeperError,
SessionExpired and ControllerMoved end a call. The only Kafka path known here is
`/controller_epoch`. Source: zk/KafkaZkClient.scala@2.6.3 (retryRequestsUntilConnected,
createRecursive, deleteRecursive, wrapRequestWithControllerEpochCheck); spec §2.1, §2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ParamSpec, TypeVar

from zk import paths
from zk.client.client import ZooKeeperClient
from zk.errors import Code, ControllerMoved, MalformedZNode, ZooKeeperError
from zk.ops import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    OpResult,
    Reply,
    Request,
    SetData,
)

P = ParamSpec("P")
T = TypeVar("T")

Write = Create | Delete | SetData

MATCH_ANY_VERSION = -1
NO_FENCING = -1


class ZkRequests:
    """The requests of one process."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self.client = client

    async def batch(self, requests: Sequence[Request]) -> list[Reply]:
        """A pipelined batch, repeated after a connection loss."""
        return await self.client.retry_until_connected(requests)

    async def one(self, request: Request) -> Reply:
        return (await self.batch([request]))[0]

    async def fenced_batch(
        self, ops: Sequence[Write], controller_epoch_zk_version: int
    ) -> list[Reply]:
        """Send each operation in a multi with the check of `/controller_epoch` (KAFKA-6082); -1:
        without fencing. ControllerMoved is raised if the check fails (spec §2.6)."""
        if controller_epoch_zk_version < 0:
            return await self.batch(ops)
        check = Check(paths.CONTROLLER_EPOCH, controller_epoch_zk_version)
        replies = await self.batch([Multi((check, op)) for op in ops])
        return [self._unfence(reply) for reply in replies]

    def _unfence(self, reply: Reply) -> Reply:
        """The operation's part of a fenced multi, as if it had been sent alone."""
        if not reply.results:
            return reply
        check, op = reply.results
        if check.code is Code.BAD_VERSION:
            raise ControllerMoved("controller epoch zkVersion check failed")
        if check.code not in (Code.OK, Code.RUNTIME_INCONSISTENCY):
            raise ZooKeeperError(check.code, paths.CONTROLLER_EPOCH)
        return reply_of(op, reply.zxid)

    def _decoded(self, decode: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | None:
        """The decoded value; None, as if the znode were absent, if it is malformed."""
        try:
            return decode(*args, **named)
        except MalformedZNode as error:
            self.client.report_malformed(error)
            return None

    async def read_if_present(self, path: str) -> Reply | None:
        """The response; None if the znode does not exist."""
        return reply_if_present(await self.one(GetData(path)), path)

    async def _read(self, path: str, decode: Callable[[bytes | None], T]) -> T | None:
        """A znode's decoded content; None if it does not exist or cannot be decoded."""
        reply = await self.read_if_present(path)
        return None if reply is None else self._decoded(decode, reply.data)

    async def _read_all(self, where: Sequence[str]) -> Iterator[Reply | None]:
        """Read several znodes in one batch, each as `read_if_present` does."""
        replies = await self.batch([GetData(path) for path in where])
        return map(reply_if_present, replies, where)

    async def get_children(self, path: str) -> list[str]:
        """Names of the children (empty if the parent is absent); sets a watch if a handler is
        registered."""
        return await self._children(GetChildren(path, watch=True))

    async def _children(self, request: GetChildren) -> list[str]:
        reply = reply_if_present(await self.one(request), request.path)
        return [] if reply is None else list(reply.children)

    async def path_exists(self, path: str) -> bool:
        return reply_if_present(await self.one(Exists(path)), path) is not None

    async def make_sure_persistent_path_exists(self, path: str) -> None:
        await self._create_recursive(path, None, fail_if_exists=False)

    async def _create_recursive(
        self, path: str, data: bytes | None, *, fail_if_exists: bool
    ) -> None:
        """Create; on NONODE create the parents, then try again (createRecursive)."""
        # The leaf first, because its parents usually exist.
        reply = await self.one(Create(path, data))
        if reply.code is Code.NO_NODE:
            await self._create_parents(paths.parent(path))
            reply = await self.one(Create(path, data))
        if reply.code is Code.NODE_EXISTS and not fail_if_exists:
            return
        expect_ok(reply, path)

    async def _create_parents(self, path: str) -> None:
        reply = await self.one(Create(path, None))
        if reply.code is Code.NO_NODE:
            await self._create_parents(paths.parent(path))
            reply = await self.one(Create(path, None))
        if reply.code is not Code.NODE_EXISTS:
            expect_ok(reply, path)

    async def delete_recursive(self, path: str, epoch_zk_version: int) -> None:
        """Delete the children, listed level by level, then the node; fenced. A znode that is
        already gone is not an error."""
        reply = reply_if_present(await self.one(GetChildren(path, watch=True)), path)
        if reply is None:
            return
        for child in sorted(reply.children):
            await self.delete_recursive(f"{path}/{child}", epoch_zk_version)
        (deleted,) = await self.delete_paths([path], epoch_zk_version)
        reply_if_present(deleted, path)

    async def delete_paths(self, where: Sequence[str], epoch_zk_version: int) -> list[Reply]:
        """Fenced deletes; most callers ignore the results."""
        deletes = [Delete(path, MATCH_ANY_VERSION) for path in where]
        return await self.fenced_batch(deletes, epoch_zk_version)


def reply_of(result: OpResult, zxid: int) -> Reply:
    return Reply(result.code, zxid, result.path, stat=result.stat)


def reply_if_present(reply: Reply, path: str) -> Reply | None:
    """The response; None if the znode does not exist. Raises ZooKeeperError for any other error."""
    if reply.code is Code.NO_NODE:
        return None
    expect_ok(reply, path)
    return reply


def expect_ok(reply: Reply, path: str) -> None:
    if reply.code is not Code.OK:
        raise ZooKeeperError(reply.code, path)
