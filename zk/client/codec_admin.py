"""Payloads of broker registrations, admin commands, configuration and the cluster id: structs <->
bytes.

The rules of `codec` apply: written in the order of a Scala 2.13 build of 2.6, read in any order
(`ZkData.scala@2.6.3`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from zk import paths
from zk.client.codec import TopicPartition
from zk.client.codec_json import Int32, decode_json, decode_number_text
from zk.errors import MalformedZNode

PLAINTEXT = "PLAINTEXT"


class EndPoint(msgspec.Struct, frozen=True):
    """One listener of a broker (EndPoint.scala@2.6.3)."""

    listener: str
    security_protocol: str
    host: str
    port: int


class BrokerInfo(msgspec.Struct, frozen=True):
    """A broker's registration; `version` is that of its JSON, read or to be written."""

    endpoints: tuple[EndPoint, ...]
    jmx_port: int = -1
    timestamp_ms: int = 0
    rack: str | None = None
    version: int = 4


class LogDirEvent(msgspec.Struct, frozen=True):
    """Event 1, a failed log directory, is the only one."""

    broker: int
    event: int = 1


class ConfigChange(msgspec.Struct, frozen=True):
    """The entity whose configuration changed: `topics/t`, `users/u/clients/c`."""

    entity_path: str


class ProducerIdBlock(msgspec.Struct, frozen=True):
    """The producer ids `start` to `end`, reserved for one broker."""

    broker: int
    start: int
    end: int


# Payloads, as in `codec`.
class _BrokerUpTo3(msgspec.Struct):
    jmx_port: int
    timestamp: str
    endpoints: list[str] | msgspec.UnsetType
    """Absent in version 1."""
    host: str | None
    version: int
    port: int
    rack: str | msgspec.UnsetType = msgspec.UNSET
    """In version 3 only."""


class _Broker(msgspec.Struct):
    features: dict[str, int] | msgspec.UnsetType
    """From version 5 on."""
    listener_security_protocol_map: dict[str, str]
    endpoints: list[str]
    rack: str | msgspec.UnsetType
    jmx_port: int
    port: int
    host: str | None
    version: int
    timestamp: str


class _BrokerRead(msgspec.Struct):
    version: Int32
    host: str | None = None
    port: Int32 = -1
    jmx_port: Int32 = -1
    timestamp: str = "0"
    endpoints: list[str] | None = None
    listener_security_protocol_map: dict[str, str] | None = None
    rack: str | None = None


class _LogDirEvent(msgspec.Struct, kw_only=True):
    version: object = 1
    broker: Int32
    event: Int32


class _Reassigned(msgspec.Struct):
    topic: str
    partition: Int32
    replicas: tuple[Int32, ...]


class _Reassignment(msgspec.Struct, kw_only=True):
    version: object = 1
    partitions: list[_Reassigned]


class _Config(msgspec.Struct):
    version: object = 1
    config: dict[str, str] = {}


class _ConfigChange(msgspec.Struct, omit_defaults=True):
    version: Int32
    entity_path: str | None = None
    entity_type: str | None = None
    entity_name: str | None = None


class _ClusterId(msgspec.Struct, kw_only=True):
    version: object = "1"
    id: str


class _ProducerIdBlock(msgspec.Struct, kw_only=True):
    version: object = 1
    broker: Int32
    block_start: str
    block_end: str


_encode = msgspec.json.Encoder().encode
_broker_decoder = msgspec.json.Decoder(_BrokerRead)
_log_dir_decoder = msgspec.json.Decoder(_LogDirEvent)
_reassignment_decoder = msgspec.json.Decoder(_Reassignment)
_config_decoder = msgspec.json.Decoder(_Config)
_config_change_decoder = msgspec.json.Decoder(_ConfigChange)
_cluster_id_decoder = msgspec.json.Decoder(_ClusterId)
_producer_id_block_decoder = msgspec.json.Decoder(_ProducerIdBlock)


def encode_broker(broker: BrokerInfo) -> bytes:
    """BrokerIdZNode.encode, and Broker's JSON before 1.1. Host and port belong to the first
    PLAINTEXT listener, or are null and -1."""
    plain = next((it for it in broker.endpoints if it.security_protocol == PLAINTEXT), None)
    host, port = (plain.host, plain.port) if plain else (None, -1)
    jmx_port, at, version = broker.jmx_port, str(broker.timestamp_ms), broker.version
    if version == 1:
        return _encode(_BrokerUpTo3(jmx_port, at, msgspec.UNSET, host, version, port))
    endpoints = [f"{it.listener}://{_address(it)}" for it in broker.endpoints]
    rack = msgspec.UNSET if broker.rack is None else broker.rack
    if version < 4:
        return _encode(_BrokerUpTo3(jmx_port, at, endpoints, host, version, port, rack))
    listeners = {it.listener: it.security_protocol for it in broker.endpoints}
    features: dict[str, int] | msgspec.UnsetType = msgspec.UNSET if version == 4 else {}
    return _encode(_Broker(features, listeners, endpoints, rack, jmx_port, port, host, version, at))


def _address(endpoint: EndPoint) -> str:
    """Utils.formatAddress: an IPv6 address is put in brackets."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def decode_broker(path: str, data: bytes | None) -> BrokerInfo:
    """BrokerIdZNode.decode, versions 1-5; version 1 has one PLAINTEXT endpoint."""
    it = decode_json(path, data, _broker_decoder)
    if it.version < 1:
        raise MalformedZNode(path, "version", f"unsupported: {it.version}")
    timestamp_ms = decode_number_text(path, "timestamp", it.timestamp)
    if it.version == 1:
        if it.host is None:
            raise MalformedZNode(path, "host", "missing")
        endpoints: tuple[EndPoint, ...] = (EndPoint(PLAINTEXT, PLAINTEXT, it.host, it.port),)
    else:
        if it.endpoints is None:
            raise MalformedZNode(path, "endpoints", "missing")
        protocols = it.listener_security_protocol_map or {}
        endpoints = tuple(_end_point(path, text, protocols) for text in it.endpoints)
    return BrokerInfo(endpoints, it.jmx_port, timestamp_ms, it.rack, it.version)


def _end_point(path: str, text: str, protocols: Mapping[str, str]) -> EndPoint:
    """EndPoint.createEndPoint: `LISTENER://host:port`; the host may be empty, or an IPv6 address in
    brackets."""
    listener, scheme, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not listener or not scheme or not colon or not port.lstrip("-").isdecimal():
        raise MalformedZNode(path, "endpoints", f"no LISTENER://host:port: {text!r}")
    host = host.removeprefix("[").removesuffix("]")
    return EndPoint(listener, protocols.get(listener, listener), host, int(port))


def encode_log_dir_event(event: LogDirEvent) -> bytes:
    """LogDirEventNotificationSequenceZNode.encode."""
    return _encode(_LogDirEvent(broker=event.broker, event=event.event))


def decode_log_dir_event(path: str, data: bytes | None) -> LogDirEvent:
    """LogDirEventNotificationSequenceZNode.decode."""
    it = decode_json(path, data, _log_dir_decoder)
    return LogDirEvent(it.broker, it.event)


def encode_reassignment(targets: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """ReassignPartitionsZNode.encode, in the order given."""
    listed = [_Reassigned(it.topic, it.partition, to) for it, to in targets.items()]
    return _encode(_Reassignment(partitions=listed))


def decode_reassignment(
    data: bytes | None, path: str = paths.REASSIGN_PARTITIONS
) -> dict[TopicPartition, tuple[int, ...]]:
    """ReassignPartitionsZNode.decode; the last entry of a partition counts."""
    it = decode_json(path, data, _reassignment_decoder)
    return {TopicPartition(p.topic, p.partition): p.replicas for p in it.partitions}


def encode_config(config: Mapping[str, str]) -> bytes:
    """ConfigEntityZNode.encode, in the order given."""
    return _encode(_Config(config=dict(config)))


def decode_config(path: str, data: bytes | None) -> dict[str, str]:
    """ConfigEntityZNode.decode: no data means no overrides."""
    return decode_json(path, data, _config_decoder).config if data else {}


def encode_config_change(change: ConfigChange) -> bytes:
    """ConfigEntityChangeNotificationSequenceZNode.encode, version 2."""
    return _encode(_ConfigChange(2, change.entity_path))


def decode_config_change(path: str, data: bytes | None) -> ConfigChange:
    """DynamicConfigManager.scala@2.6.3 processNotification, versions 1 and 2."""
    it = decode_json(path, data, _config_change_decoder)
    if it.version == 2:
        return ConfigChange(_present(path, "entity_path", it.entity_path))
    if it.version != 1:
        raise MalformedZNode(path, "version", f"unsupported: {it.version}")
    entity_type = _present(path, "entity_type", it.entity_type)
    return ConfigChange(f"{entity_type}/{_present(path, 'entity_name', it.entity_name)}")


def encode_cluster_id(cluster_id: str) -> bytes:
    """ClusterIdZNode.toJson: the version is a string in this znode."""
    return _encode(_ClusterId(id=cluster_id))


def decode_cluster_id(data: bytes | None, path: str = paths.CLUSTER_ID) -> str:
    """ClusterIdZNode.fromJson."""
    return decode_json(path, data, _cluster_id_decoder).id


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """ProducerIdManager.generateProducerIdBlockJson@2.6.3: the ids are strings, because JavaScript
    numbers cannot hold them."""
    first, last = str(block.start), str(block.end)
    return _encode(_ProducerIdBlock(broker=block.broker, block_start=first, block_end=last))


def decode_producer_id_block(
    data: bytes | None, path: str = paths.LATEST_PRODUCER_ID_BLOCK
) -> ProducerIdBlock:
    """ProducerIdManager.parseProducerIdBlockData@2.6.3."""
    it = decode_json(path, data, _producer_id_block_decoder)
    start = decode_number_text(path, "block_start", it.block_start)
    return ProducerIdBlock(it.broker, start, decode_number_text(path, "block_end", it.block_end))


def _present(path: str, field: str, value: str | None) -> str:
    if value is None:
        raise MalformedZNode(path, field, "missing")
    return value
