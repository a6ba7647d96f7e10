"""Requests to ZooKeeper as Kafka makes them: retried within a session, fenced, recursive.

What `kafka_zk_client` builds its operations from. Codes are outcomes; ZooKeeperError,
SessionExpired and ControllerMoved end a call. Knows no path of Kafka's but `/controller_epoch`.
Source: zk/KafkaZkClient.scala@2.6.3 (retryRequestsUntilConnected, createRecursive, deleteRecursive,
wrapRequestWithControllerEpochCheck); spec §2.1, §2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        """A pipelined batch with retry on connection loss."""
        return await self.client.retry_until_connected(requests)

    async def one(self, request: Request) -> Reply:
        return (await self.batch([request]))[0]

    async def fenced_batch(
        self, ops: Sequence[Write], controller_epoch_zk_version: int
    ) -> list[Reply]:
        """Each operation in a multi with the check of `/controller_epoch` (KAFKA-6082); -1: sent
        plainly. ControllerMoved when the check fails (spec §2.6)."""
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
        """None, as if the znode were absent, where it cannot be read."""
        try:
            return decode(*args, **named)
        except MalformedZNode as error:
            self.client.report_malformed(error)
            return None

    async def get_children(self, path: str) -> list[str]:
        """Names of the children (empty when the parent is absent), watched where a handler is
        registered and the request asks for it."""
        return await self._children(GetChildren(path, watch=True))

    async def _children(self, request: GetChildren) -> list[str]:
        reply = await self.one(request)
        if reply.code is Code.NO_NODE:
            return []
        expect_ok(reply, request.path)
        return list(reply.children)

    async def path_exists(self, path: str) -> bool:
        reply = await self.one(Exists(path))
        if reply.code not in (Code.OK, Code.NO_NODE):
            raise ZooKeeperError(reply.code, path)
        return reply.code is Code.OK

    async def make_sure_persistent_path_exists(self, path: str) -> None:
        await self._create_recursive(path, None, fail_if_exists=False)

    async def _create_recursive(
        self, path: str, data: bytes | None, *, fail_if_exists: bool
    ) -> None:
        """Create; on NONODE the parents first, then again (createRecursive)."""
        # The leaf first: most often its parents exist.
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
        """Children first, each found by listing its parent, then the node; fenced. What is gone
        already is no error, anything else is."""
        reply = await self.one(GetChildren(path, watch=True))
        if reply.code is Code.NO_NODE:
            return
        expect_ok(reply, path)
        for child in sorted(reply.children):
            await self.delete_recursive(f"{path}/{child}", epoch_zk_version)
        deleted = (await self._delete(path, epoch_zk_version))[0]
        if deleted.code is not Code.NO_NODE:
            expect_ok(deleted, path)

    async def delete_path(self, path: str, epoch_zk_version: int) -> None:
        """Fenced; what comes of it is not looked at."""
        await self._delete(path, epoch_zk_version)

    async def _delete(self, path: str, epoch_zk_version: int) -> list[Reply]:
        return await self.fenced_batch([Delete(path, MATCH_ANY_VERSION)], epoch_zk_version)


def reply_of(result: OpResult, zxid: int) -> Reply:
    return Reply(result.code, zxid, result.path, stat=result.stat)


def expect_ok(reply: Reply, path: str) -> None:
    if reply.code is not Code.OK:
        raise ZooKeeperError(reply.code, path)
