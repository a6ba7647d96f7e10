"""KafkaZkClient's requests for configurations of topics and brokers, and for their changes.

Owns the requests below `/config`; does not know what a setting means. Source:
zk/KafkaZkClient.scala@2.6.3, zk/AdminZkClient.scala@2.6.3; spec §1.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from zk import paths
from zk.client import codec_admin
from zk.client.zk_requests import MATCH_ANY_VERSION, ZkRequests, expect_ok
from zk.errors import Code, ZooKeeperError
from zk.ops import Create, CreateMode, GetData, SetData


class ConfigRequests(ZkRequests):
    """One process's requests for configurations."""

    async def get_entity_configs(self, entity_type: str, entity: str) -> dict[str, str]:
        path = paths.config_entity(entity_type, entity)
        return await self._read(path, partial(codec_admin.decode_config, path)) or {}

    async def get_topic_configs(
        self, topics: Sequence[str]
    ) -> dict[str, dict[str, str] | ZooKeeperError]:
        """Each topic's overrides, or why they cannot be read; one batch (getLogConfigs)."""
        where = [paths.config_entity("topics", t) for t in topics]
        try:
            replies = await self.batch([GetData(path) for path in where])
        except ZooKeeperError as error:
            return dict.fromkeys(topics, error)
        configs: dict[str, dict[str, str] | ZooKeeperError] = {}
        for topic, path, reply in zip(topics, where, replies, strict=True):
            if reply.code in (Code.OK, Code.NO_NODE):
                data = reply.data if reply.code is Code.OK else None
                configs[topic] = self._decoded(codec_admin.decode_config, path, data) or {}
            else:
                configs[topic] = ZooKeeperError(reply.code, path)
        return configs

    async def set_or_create_entity_configs(
        self, entity_type: str, entity: str, config: Mapping[str, str]
    ) -> None:
        """setData; on NONODE create."""
        path, data = paths.config_entity(entity_type, entity), codec_admin.encode_config(config)
        reply = await self.one(SetData(path, data, MATCH_ANY_VERSION))
        if reply.code is Code.NO_NODE:
            await self._create_recursive(path, data, fail_if_exists=False)
            return
        expect_ok(reply, path)

    async def create_config_change_notification(self, entity_path: str) -> None:
        await self.make_sure_persistent_path_exists(paths.CONFIG_CHANGES)
        data = codec_admin.encode_config_change(codec_admin.ConfigChange(entity_path))
        prefix = paths.config_change_notification_sequence()
        reply = await self.one(Create(prefix, data, CreateMode.PERSISTENT_SEQUENTIAL))
        expect_ok(reply, prefix)

    async def get_config_change(self, name: str) -> tuple[str, int] | None:
        """(entity path, the node's ctime); None if it is gone or unreadable."""
        path = f"{paths.CONFIG_CHANGES}/{name}"
        reply = await self.one(GetData(path))
        if reply.code is not Code.OK or reply.stat is None:
            return None
        change = self._decoded(codec_admin.decode_config_change, path, reply.data)
        return (change.entity_path, reply.stat.ctime) if change else None
