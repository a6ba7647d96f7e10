"""ApiVersions, Metadata and FindCoordinator: how a client finds its way.

FindCoordinator is answered here: there are no consumer groups. Sources: ApiVersionsResponse.java,
KafkaApis.scala@2.6.3 handleTopicMetadataRequest; spec §4.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
)
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.wire.api import Api, Knows, Sent, by_topic, ranges_of
from emulator.worlds.wire.entities import Values

CLUSTER_ID = "emulated-cluster-id---"
SOFTWARE, SOFTWARE_VERSION = "kafka-isr-emulator", "1"
"""What a client says of itself (KIP-511)."""
NO_OPERATIONS = -(1 << 31)
NO_GROUPS = "consumer groups and transactions are not emulated: assign partitions instead"


class ApiVersions(Api):
    """Answered here: what this broker speaks. A client of ours asks for nothing but an answer."""

    name, key, sends = "ApiVersions", 18, ApiVersionsRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 3}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        return Sent((), ranges_of(knows))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        return {"error_code": Errors.NONE, "api_keys": sent.rest, "throttle_time": 0}

    def ask(self, request: ApiVersionsRequest, now_ms: int) -> Values:
        return {"client_software_name": SOFTWARE, "client_software_version": SOFTWARE_VERSION}

    def response(self, entity: Any, request: Any) -> ApiVersionsResponse:
        return ApiVersionsResponse({api.api_key: api.max_version for api in entity.api_keys})


class Metadata(Api):
    """All topics: null (an empty list up to version 0). Nothing is created because somebody asks
    for it."""

    name, key, sends = "Metadata", 3, MetadataRequest
    newest = {"1.0": 5, "2.0": 6, "2.1": 7, "2.3": 8, "2.4": 9}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        names = None if entity.topics is None else tuple(t.name for t in entity.topics)
        if entity.__version__ == 0 and not names:
            names = None
        return Sent((MetadataRequest(names or ()),), names)

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        live = {b.broker for b in response.brokers}
        found = dict(by_topic(response.partitions))
        names = list(found) if sent.rest is None else sent.rest
        return {
            "throttle_time": 0,
            "brokers": [
                {"node_id": b.broker, "host": b.host, "port": b.port, "rack": None}
                for b in response.brokers
            ],
            "cluster_id": CLUSTER_ID,
            "controller_id": response.controller_id,
            "topics": [_topic(name, found.get(name, []), live) for name in names],
            "cluster_authorized_operations": NO_OPERATIONS,
        }

    def ask(self, request: MetadataRequest, now_ms: int) -> Values:
        topics = [{"name": name} for name in request.topics] or None
        return {
            "topics": topics,
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }

    def response(self, entity: Any, request: Any) -> MetadataResponse:
        brokers = tuple(LiveBroker(b.node_id, b.host, b.port) for b in entity.brokers)
        states = tuple(
            PartitionState(
                TopicPartition(t.name, p.partition_index),
                -1,
                p.leader_id,
                getattr(p, "leader_epoch", -1),
                tuple(p.isr_nodes),
                -1,
                tuple(p.replica_nodes),
            )
            for t in entity.topics
            for p in t.partitions
        )
        controller = getattr(entity, "controller_id", -1)
        return MetadataResponse(brokers, controller, states, entity.__version__)


def _topic(name: str, states: Sequence[PartitionState], live: set[int]) -> Values:
    error = Errors.NONE if states else Errors.UNKNOWN_TOPIC_OR_PARTITION
    return {
        "error_code": error,
        "name": name,
        "is_internal": False,
        "partitions": [_partition(s, live) for s in states],
        "topic_authorized_operations": NO_OPERATIONS,
    }


def _partition(state: PartitionState, live: set[int]) -> Values:
    """A leader that is not alive is none (MetadataCache.scala getPartitionMetadata)."""
    there = state.leader in live
    return {
        "error_code": Errors.NONE if there else Errors.LEADER_NOT_AVAILABLE,
        "partition_index": state.partition.partition,
        "leader_id": state.leader if there else -1,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "offline_replicas": state.offline_replicas,
    }


class FindCoordinator(Api):
    """Refused, with a reason, and not so that a client asks again for ever."""

    name, key = "FindCoordinator", 10
    newest = {"1.0": 1, "2.0": 2, "2.4": 3}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        return Sent(())

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        return {
            "throttle_time": 0,
            "error_code": Errors.INVALID_REQUEST,
            "error_message": NO_GROUPS,
            "node_id": -1,
            "host": "",
            "port": -1,
        }
