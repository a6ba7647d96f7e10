"""Older releases' request sequences: the controller's election up to 2.0, a broker's registration
up to 2.1.

Functions over the requests of one process; they do not know the release. Sources:
server/ZookeeperLeaderElector.scala@0.8.2.2 and @0.10.2.2, controller/KafkaController.scala@1.0.2
and @2.0.1 (elect, incrementControllerEpoch), utils/ZkUtils.scala@1.0.2; spec §2.7, §2.8.
"""

from __future__ import annotations

from collections.abc import Callable

from zk import paths
from zk.client import codec, codec_admin
from zk.client.client_version import ClientVersion
from zk.client.codec_admin import BrokerInfo
from zk.client.zk_requests import ZkRequests, expect_ok, reply_if_present
from zk.errors import Code, ZooKeeperError
from zk.ops import Create, CreateMode, GetData, SetData

FIRST_EPOCH, FIRST_VERSION = 1, 1
"""The values that a controller remembers after it has created the epoch's znode; the actual version
is 0."""


async def create_controller(
    zk: ZkRequests, broker: int, wall_ms: int, client_version: ClientVersion
) -> bool:
    """The first step: create `/controller`; False if another broker has it."""
    data = codec.encode_controller(codec.ControllerZNode(broker, wall_ms))
    if not client_version.compares_ephemerals:
        return await _create_ephemeral(zk, paths.CONTROLLER, data, client_version)

    def is_mine(stored: bytes | None) -> bool:
        return codec.decode_controller(stored).broker_id == broker

    return await _create_unlike_mine(zk, paths.CONTROLLER, data, is_mine)


async def increment_controller_epoch(
    zk: ZkRequests, client_version: ClientVersion
) -> tuple[int, int]:
    """The second and third step: read the epoch, then write the next one at that version. Returns
    (epoch, version). Between the steps another broker may be elected (H8)."""
    epoch, version = 0, 0
    if not client_version.looks_before_creating or await zk.path_exists(paths.CONTROLLER_EPOCH):
        current = await zk.read_if_present(paths.CONTROLLER_EPOCH)
        if current is not None and current.stat is not None:
            epoch, version = codec.decode_controller_epoch(current.data), current.stat.version
    data = codec.encode_controller_epoch(epoch + 1)
    reply = await zk.one(SetData(paths.CONTROLLER_EPOCH, data, version))
    if reply.code is Code.NO_NODE:
        first = codec.encode_controller_epoch(FIRST_EPOCH)
        expect_ok(await zk.one(Create(paths.CONTROLLER_EPOCH, first)), paths.CONTROLLER_EPOCH)
        return FIRST_EPOCH, FIRST_VERSION
    expect_ok(reply, paths.CONTROLLER_EPOCH)
    assert reply.stat is not None
    return epoch + 1, reply.stat.version


async def register_broker(
    zk: ZkRequests, broker: int, info: BrokerInfo, client_version: ClientVersion
) -> None:
    """A plain create. NODEEXISTS of another session ends the start-up; in 0.8 that of another host
    or port."""
    path = paths.broker_id(broker)
    if client_version.checks_ephemerals_itself:
        for parent in (paths.parent(paths.BROKER_IDS), paths.BROKER_IDS):
            await zk.one(Create(parent, None))
    data = codec_admin.encode_broker(info)

    def is_mine(stored: bytes | None) -> bool:
        return codec_admin.decode_broker(path, stored).endpoints == info.endpoints

    if client_version.compares_ephemerals:
        created = await _create_unlike_mine(zk, path, data, is_mine)
    else:
        created = await _create_ephemeral(zk, path, data, client_version)
    if not created:
        raise ZooKeeperError(Code.NODE_EXISTS, path)


async def _create_ephemeral(
    zk: ZkRequests, path: str, data: bytes, client_version: ClientVersion
) -> bool:
    """True if the znode belongs to this session, even from an attempt whose response was lost."""
    while True:
        reply = await zk.one(Create(path, data, CreateMode.EPHEMERAL))
        if reply.code is Code.OK:
            return True
        if reply.code is not Code.NODE_EXISTS:
            raise ZooKeeperError(reply.code, path)
        if client_version.checks_ephemerals_itself:
            # ZkClient is not asked, so a listener of the path gets no watch by this read; what is
            # lost with the connection begins with the create again.
            (existing,) = await zk.client.handle_requests([GetData(path)])
        else:
            existing = await zk.one(GetData(path))
            reply_if_present(existing, path)
        if existing.stat is not None:
            return existing.stat.ephemeral_owner == zk.client.session_id


async def _create_unlike_mine(
    zk: ZkRequests, path: str, data: bytes, is_mine: Callable[[bytes | None], bool]
) -> bool:
    """createEphemeralPathExpectConflictHandleZKBug (KAFKA-992). Identical data was written by an
    attempt whose response was lost. Equivalent data was written in an earlier session: wait until
    it has expired. False for any other data.
    """
    while True:
        reply = await zk.one(Create(path, data, CreateMode.EPHEMERAL))
        if reply.code is Code.OK:
            return True
        if reply.code is not Code.NODE_EXISTS:
            raise ZooKeeperError(reply.code, path)
        existing = await zk.read_if_present(path)
        if existing is not None and existing.data == data:
            return True
        again = await zk.read_if_present(path)
        if again is None:
            continue
        if not is_mine(again.data):
            return False
        await zk.client.sleep_session_timeout()
