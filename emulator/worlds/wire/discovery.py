"""ApiVersions and Metadata: how a client finds its way.

Sources: ApiVersionsResponse.java, KafkaApis.scala@2.6.3 handleTopicMetadataRequest; spec §4.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.topic_names import INTERNAL_TOPICS
from emulator.kafka.protocol import messages as m
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.wire.api import Api, Sent, apis
from emulator.worlds.wire.entities import Entity, Values
from emulator.worlds.wire.tables import ABSENT, by_topic

SOFTWARE, SOFTWARE_VERSION = "kafka-isr-emulator", "1"
"""What a client says of itself (KIP-511)."""
NO_OPERATIONS = -(1 << 31)


class ApiVersions(Api[m.ApiVersionsRequest, m.ApiVersionsResponse]):
    """Processed where frames are read, which knows this broker's versions. Our own clients use it
    only to see whether a broker responds."""

    name, key, sends = "ApiVersions", 18, m.ApiVersionsRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 3}

    def read_request(self, entity: Entity) -> Sent:
        return Sent(())

    def write_response(self, entity: Entity, responses: Sequence[m.ApiVersionsResponse]) -> Values:
        return {"error_code": Errors.NONE, "api_keys": ranges_of(responses[0])}

    def write_request(self, request: m.ApiVersionsRequest) -> Values:
        return {"client_software_name": SOFTWARE, "client_software_version": SOFTWARE_VERSION}

    def read_response(self, entity: Entity, request: m.ApiVersionsRequest) -> m.ApiVersionsResponse:
        return m.ApiVersionsResponse({api.api_key: api.max_version for api in entity.api_keys})


def ranges_of(response: m.ApiVersionsResponse) -> list[Values]:
    return [
        {"api_key": key, "min_version": apis()[key].least, "max_version": newest}
        for key, newest in response.newest.items()
    ]


class Metadata(Api[m.MetadataRequest, m.MetadataResponse]):
    """All topics: null (in version 0 an empty list). Up to version 3 every request for a topic may
    create it."""

    name, key, sends = "Metadata", 3, m.MetadataRequest
    newest = {"1.0": 5, "2.0": 6, "2.1": 7, "2.3": 8, "2.4": 9}
    padding = 3
    """librdkafka writes the null array of all topics with four bytes where one is meant."""

    def _topics(self, entity: Entity) -> tuple[str, ...] | None:
        """None means all."""
        # Version 0 has no null: an empty list requests all topics, in later versions none.
        if entity.topics is None or (entity.__version__ == 0 and not entity.topics):
            return None
        return tuple(topic.name for topic in entity.topics)

    def read_request(self, entity: Entity) -> Sent:
        creates = getattr(entity, "allow_auto_topic_creation", True)
        return Sent((m.MetadataRequest(self._topics(entity) or (), creates),))

    def write_response(self, entity: Entity, responses: Sequence[m.MetadataResponse]) -> Values:
        (response,) = responses
        live = {b.broker for b in response.brokers}
        states = dict(by_topic(response.partitions, lambda state: state.partition))
        names, errors = self._topics(entity), dict(response.errors)
        unknown = Errors.UNKNOWN_TOPIC_OR_PARTITION
        return {
            "brokers": [
                {"node_id": b.broker, "host": b.host, "port": b.port, "rack": b.rack}
                for b in response.brokers
            ],
            "cluster_id": response.cluster_id,
            "controller_id": response.controller_id,
            "topics": [
                {
                    "error_code": Errors.NONE if name in states else errors.get(name, unknown),
                    "name": name,
                    "is_internal": name in INTERNAL_TOPICS,
                    "partitions": [
                        _partition(state, live, entity.__version__)
                        for state in states.get(name, ())
                    ],
                    "topic_authorized_operations": NO_OPERATIONS,
                }
                for name in (states if names is None else names)
            ],
            "cluster_authorized_operations": NO_OPERATIONS,
        }

    def write_request(self, request: m.MetadataRequest) -> Values:
        # Null requests all of them.
        topics = [{"name": name} for name in request.topics] or None
        return {
            "topics": topics,
            "allow_auto_topic_creation": request.allow_auto_topic_creation,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }

    def read_response(self, entity: Entity, request: m.MetadataRequest) -> m.MetadataResponse:
        brokers = tuple(
            m.LiveBroker(b.node_id, b.host, b.port, getattr(b, "rack", None))
            for b in entity.brokers
        )
        states = tuple(
            PartitionState(
                TopicPartition(t.name, p.partition_index),
                ABSENT,
                p.leader_id,
                getattr(p, "leader_epoch", ABSENT),
                p.isr_nodes,
                ABSENT,
                p.replica_nodes,
            )
            for t in entity.topics
            for p in t.partitions
        )
        controller = getattr(entity, "controller_id", ABSENT)
        return m.MetadataResponse(
            brokers, controller, states, entity.__version__, getattr(entity, "cluster_id", None)
        )


def _partition(state: PartitionState, live: set[int], version: int) -> Values:
    """A leader that is not live counts as none. From version 6 on the error is a missing listener,
    which Kafka checks for this broker, not for the leader (MetadataCache.scala@2.6.3
    getPartitionMetadata).
    """
    has_leader = state.leader in live
    error = Errors.LISTENER_NOT_FOUND if version >= 6 else Errors.LEADER_NOT_AVAILABLE
    return {
        "error_code": Errors.NONE if has_leader else error,
        "partition_index": state.partition.partition,
        "leader_id": state.leader if has_leader else -1,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "offline_replicas": state.offline_replicas,
    }
