"""Registrations, admin commands and configuration: written by real Kafka, and arbitrary ones."""

from __future__ import annotations

import pytest

from zk.client import codec_admin as codec
from zk.client.codec import TopicPartition
from zk.client.codec_admin import BrokerInfo, ConfigChange, EndPoint, LogDirEvent
from zk.errors import MalformedZNode

PLAIN = EndPoint("PLAINTEXT", "PLAINTEXT", "h1", 9092)
V4_213 = (
    b'{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://h1:9092"],"jmx_port":-1,"port":9092,"host":"h1",'
    b'"version":4,"timestamp":"1600000000000"}'
)
READ = {
    1: b'{"jmx_port":-1,"timestamp":"1400000000000","host":"h1","version":1,"port":9092}',
    2: b'{"jmx_port":-1,"timestamp":"1450000000000","endpoints":["PLAINTEXT://h1:9092"],'
    b'"host":"h1","version":2,"port":9092}',
    3: b'{"jmx_port":-1,"timestamp":"1460000000000","endpoints":["PLAINTEXT://h1:9092"],'
    b'"host":"h1","version":3,"port":9092,"rack":"r1"}',
    4: V4_213,
    5: b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://h1:9092"],"jmx_port":-1,"port":9092,"host":"h1",'
    b'"version":5,"timestamp":"1620000000000"}',
}


@pytest.mark.parametrize("version", READ)
def test_registrations_of_all_versions_are_read(version: int) -> None:
    broker = codec.decode_broker("/b", READ[version])
    assert (broker.version, broker.endpoints, broker.jmx_port) == (version, (PLAIN,), -1)
    assert broker.rack == ("r1" if version == 3 else None)


@pytest.mark.parametrize("version", READ)
def test_registrations_of_all_versions_are_written(version: int) -> None:
    assert codec.encode_broker(codec.decode_broker("/b", READ[version])) == READ[version]


def test_a_registration_is_written_in_version_4_in_the_order_of_scala_2_13() -> None:
    broker = BrokerInfo((PLAIN,), timestamp_ms=1_600_000_000_000)
    assert codec.encode_broker(broker) == V4_213
    assert codec.decode_broker("/b", V4_213) == broker


def test_a_broker_without_plaintext_has_no_top_level_address_and_a_rack_comes_third() -> None:
    broker = BrokerInfo((EndPoint("IN", "SSL", "::1", 1), EndPoint("EX", "SSL", "h", 2)), rack="r")
    data = codec.encode_broker(broker)
    assert data == (
        b'{"listener_security_protocol_map":{"IN":"SSL","EX":"SSL"},'
        b'"endpoints":["IN://[::1]:1","EX://h:2"],"rack":"r","jmx_port":-1,"port":-1,'
        b'"host":null,"version":4,"timestamp":"0"}'
    )
    assert codec.decode_broker("/b", data) == broker


MALFORMED_BROKERS = [
    (b'{"version":0}', "version"),
    (b'{"version":1}', "host"),
    (b'{"version":4}', "endpoints"),
    (b'{"version":4,"endpoints":["PLAINTEXT://h1"]}', "endpoints"),
    (b'{"version":4,"endpoints":["h1:9092"]}', "endpoints"),
    (b'{"version":4,"endpoints":["A://h:x"]}', "endpoints"),
    (b'{"endpoints":[]}', "version"),
    (b'{"version":4,"endpoints":[],"timestamp":"x"}', "timestamp"),
]


@pytest.mark.parametrize(("data", "field"), MALFORMED_BROKERS)
def test_a_malformed_registration_is_named(data: bytes, field: str) -> None:
    with pytest.raises(MalformedZNode, match=f"^/brokers/ids/1: {field}: "):
        codec.decode_broker("/brokers/ids/1", data)


def test_log_dir_events() -> None:
    data = b'{"version":1,"broker":2,"event":1}'
    assert codec.encode_log_dir_event(LogDirEvent(2)) == data
    assert codec.decode_log_dir_event("/l", data) == LogDirEvent(2, 1)


def test_reassignments() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}'
    targets = {TopicPartition("t", 0): (4, 5, 6)}
    assert codec.encode_reassignment(targets) == data
    assert codec.decode_reassignment(data) == targets
    with pytest.raises(MalformedZNode, match="/admin/reassign_partitions: partitions: missing"):
        codec.decode_reassignment(b"{}")


def test_configurations() -> None:
    data = b'{"version":1,"config":{"min.insync.replicas":"2"}}'
    config = {"min.insync.replicas": "2"}
    assert codec.encode_config(config) == data
    assert codec.decode_config("/c", data) == config
    assert codec.decode_config("/c", None) == codec.decode_config("/c", b"") == {}
    with pytest.raises(MalformedZNode):
        codec.decode_config("/c", b'{"config":{"a":1}}')


def test_configuration_changes() -> None:
    change = ConfigChange("topics/t")
    assert codec.encode_config_change(change) == b'{"version":2,"entity_path":"topics/t"}'
    v1 = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert codec.decode_config_change("/c", v1) == change
    assert codec.decode_config_change("/c", codec.encode_config_change(change)) == change
    with pytest.raises(MalformedZNode, match="/c: entity_name: missing"):
        codec.decode_config_change("/c", b'{"version":1,"entity_type":"topics"}')
    with pytest.raises(MalformedZNode, match="/c: version: unsupported: 3"):
        codec.decode_config_change("/c", b'{"version":3}')
    with pytest.raises(MalformedZNode, match="Expected `object`"):
        codec.decode_config_change("/c", b'"t"')


def test_the_cluster_s_id_has_a_version_that_is_a_string() -> None:
    data = b'{"version":"1","id":"McZM_uPoQZmvSqcFAbCdEQ"}'
    assert codec.encode_cluster_id("McZM_uPoQZmvSqcFAbCdEQ") == data
    assert codec.decode_cluster_id(data) == "McZM_uPoQZmvSqcFAbCdEQ"


def test_a_block_of_producer_ids_has_its_ids_as_strings() -> None:
    data = b'{"version":1,"broker":2,"block_start":"1000","block_end":"1999"}'
    block = codec.ProducerIdBlock(2, 1000, 1999)
    assert codec.encode_producer_id_block(block) == data
    assert codec.decode_producer_id_block(data) == block
    with pytest.raises(MalformedZNode, match="block_end: no number: 'x'"):
        codec.decode_producer_id_block(data.replace(b"1999", b"x"))
