"""Produce, Fetch, ListOffsets, DeleteRecords and OffsetForLeaderEpoch.

Owns what of a produce request cannot be given to the log (no batch, a wrong checksum), which is
answered here, partition by partition. Older record formats are not spoken. Sources:
ProduceRequest.java, FetchRequest.java, FetchResponse.java@2.6.3; spec §11.3.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import DivergingEpoch
from emulator.kafka.protocol import messages as m
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.api import Api, Sent
from emulator.worlds.wire.decoder import MOST_ENTRIES
from emulator.worlds.wire.entities import Entity, Values, milliseconds
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.records import filled, produced
from emulator.worlds.wire.tables import (
    ABSENT,
    FieldTable,
    PartitionNumbers,
    PartitionTable,
    by_topic,
    error_of,
)
from emulator.worlds.wire.topic_ids import UnknownTopicId

LATEST, EARLIEST = -1, -2
NO_REPLICA_ID = -2
"""Of OffsetForLeaderEpoch before version 3, by the default of its schema."""

_PRODUCED = PartitionTable(
    m.ProducedPartition,
    "responses.name",
    "partition_responses.index",
    "error=error_code base_offset",
    also=lambda p: {
        "log_append_time": None,
        "log_start_offset": 0 if p.error is Errors.NONE else -1,
        "record_errors": (),
        "error_message": None,
    },
)


class Produce(Api[m.ProduceRequest, m.ProduceResponse]):
    """From version 3 on (record format 2). Transactions are refused."""

    name, key, sends, least = "Produce", 0, m.ProduceRequest, 3
    newest = {"1.0": 5, "2.0": 6, "2.1": 7, "2.4": 8}

    def read_request(self, entity: Entity) -> Sent:
        partitions, refused = [], []
        for topic in entity.topic_data:
            for part in topic.partition_data:
                partition = TopicPartition(topic.name, part.index)
                if entity.transactional_id is not None:
                    refused.append(m.ProducedPartition(partition, Errors.INVALID_REQUEST, -1))
                    continue
                data = bytes(part.records or b"")
                try:
                    batch = produced(data)
                except Malformed:
                    # Each partition on its own: the others are appended all the same.
                    refused.append(m.ProducedPartition(partition, Errors.CORRUPT_MESSAGE, -1))
                else:
                    count = batch.next_offset - batch.base_offset
                    partitions.append(
                        m.ProducePartition(partition, count, batch.size, data, batch.producer)
                    )
        # Also if no partition is left: the broker checks acks and responds.
        request = m.ProduceRequest(entity.acks, milliseconds(entity.timeout), tuple(partitions))
        return Sent((request,), (m.ProduceResponse(tuple(refused)),))

    def write_response(
        self, entity: Entity, responses: Sequence[m.ProduceResponse]
    ) -> Values | None:
        # acks=0: Kafka sends no response.
        if entity.acks == 0:
            return None
        return _PRODUCED.write(p for response in responses for p in response.partitions)

    def write_request(self, request: m.ProduceRequest) -> Values:
        now_ms = time.time_ns() // 1_000_000
        data = [
            {
                "name": topic,
                "partition_data": [
                    {
                        "index": p.partition.partition,
                        "records": p.data or filled(p.records, p.size, now_ms),
                    }
                    for p in parts
                ],
            }
            for topic, parts in by_topic(request.partitions, lambda p: p.partition)
        ]
        return {
            "transactional_id": None,
            "acks": request.acks,
            "timeout": request.timeout_ms,
            "topic_data": data,
        }

    def read_response(self, entity: Entity, request: m.ProduceRequest) -> m.ProduceResponse:
        return m.ProduceResponse(_PRODUCED.read(entity))


_FETCHES = PartitionTable(
    m.FetchPartition,
    "topics.topic",
    "partitions.partition",
    "current_leader_epoch fetch_offset log_start_offset max_bytes=partition_max_bytes"
    " last_fetched_epoch",
    adjacent=True,
)


class _DivergingEpochs:
    """The tagged field of a fetched partition; absent if the logs do not diverge."""

    def read(self, entity: Entity) -> DivergingEpoch | None:
        end = getattr(entity, "diverging_epoch", None)
        return None if end is None or end.epoch < 0 else DivergingEpoch(end.epoch, end.end_offset)

    def write(self, value: DivergingEpoch | None) -> Values:
        return {} if value is None else {"diverging_epoch": value._asdict()}


_FETCHED = PartitionTable(
    m.FetchedPartition,
    "responses.topic",
    "partitions.partition_index",
    "error=error_code high_watermark log_start_offset batches=records preferred_read_replica",
    # Without transactions all records below the high watermark are stable.
    also=lambda p: {"last_stable_offset": p.high_watermark, "aborted_transactions": None},
    parts={"diverging_epoch": _DivergingEpochs()},
    adjacent=True,
)


class _RackIds:
    """The consumer's rack; an empty one is sent by a client that has none."""

    def read(self, entity: Entity) -> str | None:
        rack: str | None = getattr(entity, "rack_id", None)
        return rack

    def write(self, value: str | None) -> Values:
        return {"rack_id": value or ""}


class Fetch(Api[m.FetchRequest, m.FetchResponse]):
    """From version 4 on (record format 2). A follower that is real Kafka 3.1 or later sends version
    13, with topic ids, if the controller has given the topics ids."""

    name, key, sends, least = "Fetch", 1, m.FetchRequest, 4
    most_entries = MOST_ENTRIES
    newest = {"1.0": 6, "1.1": 7, "2.0": 8, "2.1": 10, "2.3": 11, "2.7": 12, "3.1": 13}
    cap, most_sent = 13, 12

    request = FieldTable(
        m.FetchRequest,
        "replica_id max_wait_ms=max_wait min_bytes max_bytes session_id session_epoch",
        parts={
            "partitions": _FETCHES,
            "forgotten": PartitionNumbers("forgotten_topics_data.topic", "partitions"),
            "rack_id": _RackIds(),
        },
        absent={"session_id": 0},
        also=lambda _: {"isolation_level": 0},
    )
    # Version 7 introduced sessions and an error for the whole request (KIP-227).
    response = FieldTable(
        m.FetchResponse,
        "error=error_code session_id",
        parts={"partitions": _FETCHED},
        absent={"error": Errors.NONE, "session_id": 0},
    )

    def read_request(self, entity: Entity) -> Sent:
        try:
            return super().read_request(entity)
        except UnknownTopicId:
            # The controller's request with the id is on its way: the follower backs off and begins
            # a new session. Kafka answers UNKNOWN_TOPIC_ID for the partitions: the follower backs
            # off as well.
            return Sent((), (m.FetchResponse(Errors.FETCH_SESSION_TOPIC_ID_ERROR, 0, ()),))


class ListOffsets(Api[m.ListOffsetsRequest, m.ListOffsetsResponse]):
    """Our request has one partition, Kafka's may have many."""

    name, key, sends, least = "ListOffsets", 2, m.ListOffsetsRequest, 1
    newest = {"1.0": 2, "2.0": 3, "2.1": 4, "2.2": 5}

    def _queries(self, entity: Entity) -> list[m.ListOffsetsRequest]:
        return [
            m.ListOffsetsRequest(
                entity.replica_id,
                TopicPartition(topic.name, part.partition_index),
                getattr(part, "current_leader_epoch", ABSENT),
                part.timestamp == EARLIEST,
                None if part.timestamp in (LATEST, EARLIEST) else part.timestamp,
            )
            for topic in entity.topics
            for part in topic.partitions
        ]

    def read_request(self, entity: Entity) -> Sent:
        return Sent(tuple(self._queries(entity)))

    def write_response(self, entity: Entity, responses: Sequence[m.ListOffsetsResponse]) -> Values:
        # Our response does not name its partition: responses are in the request's order.
        partitions = (query.partition for query in self._queries(entity))
        results = list(zip(partitions, responses, strict=True))
        # Clients before 2.2 do not know OFFSET_NOT_AVAILABLE, but repeat a request for the error
        # that replaces it (KafkaApis.scala@2.6.3 handleListOffsetRequestV1AndAbove).
        replaced = (
            {Errors.OFFSET_NOT_AVAILABLE: Errors.LEADER_NOT_AVAILABLE}
            if entity.__version__ < 5
            else {}
        )
        topics = [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": partition.partition,
                        "error_code": replaced.get(response.error, response.error),
                        "timestamp": response.timestamp_ms,
                        "offset": response.offset,
                        "leader_epoch": response.leader_epoch,
                    }
                    for partition, response in group
                ],
            }
            for topic, group in by_topic(results, lambda result: result[0])
        ]
        return {"topics": topics}

    def write_request(self, request: m.ListOffsetsRequest) -> Values:
        timestamp = request.timestamp_ms
        if timestamp is None:
            timestamp = EARLIEST if request.earliest else LATEST
        partition = {
            "partition_index": request.partition.partition,
            "current_leader_epoch": request.current_leader_epoch,
            "timestamp": timestamp,
        }
        topics = [{"name": request.partition.topic, "partitions": [partition]}]
        return {"replica_id": request.replica_id, "isolation_level": 0, "topics": topics}

    def read_response(self, entity: Entity, request: m.ListOffsetsRequest) -> m.ListOffsetsResponse:
        result = entity.topics[0].partitions[0]
        error = error_of(result.error_code)
        return m.ListOffsetsResponse(error, result.offset, timestamp_ms=result.timestamp)


class DeletionTarget(NamedTuple):
    """A partition of DeleteRecords: what is before `offset` goes."""

    partition: TopicPartition
    offset: int


class DeleteRecords(Api[m.DeleteRecordsRequest, m.DeleteRecordsResponse]):
    """To the leader of its partitions."""

    name, key, sends = "DeleteRecords", 21, m.DeleteRecordsRequest
    newest = {"0.11": 0, "2.0": 1, "2.7": 2}

    request = FieldTable(
        m.DeleteRecordsRequest,
        "timeout_ms=timeout",
        parts={
            "offsets": PartitionTable(
                DeletionTarget, "topics.name", "partitions.partition_index", "offset"
            )
        },
    )
    response = FieldTable(
        m.DeleteRecordsResponse,
        "",
        parts={
            "partitions": PartitionTable(
                m.DeletedRecords,
                "topics.name",
                "partitions.partition_index",
                "error=error_code low_watermark",
            )
        },
    )


_EPOCH_QUERIES = PartitionTable(
    m.EpochQuery,
    "topics.topic",
    "partitions.partition",
    "current_leader_epoch leader_epoch",
)
_END_OFFSETS = PartitionTable(
    m.EpochEndOffset,
    "topics.topic",
    "partitions.partition",
    "error=error_code leader_epoch end_offset",
)


class OffsetForLeaderEpoch(Api[m.OffsetsForLeaderEpochRequest, m.OffsetsForLeaderEpochResponse]):
    """Sent by followers before they truncate."""

    name, key, sends = "OffsetForLeaderEpoch", 23, m.OffsetsForLeaderEpochRequest
    most_entries = MOST_ENTRIES
    newest = {"1.0": 0, "2.0": 1, "2.1": 2, "2.3": 3}

    request = FieldTable(
        m.OffsetsForLeaderEpochRequest,
        "replica_id",
        parts={"partitions": _EPOCH_QUERIES},
        absent={"replica_id": NO_REPLICA_ID},
    )
    response = FieldTable(m.OffsetsForLeaderEpochResponse, "", parts={"partitions": _END_OFFSETS})

    def read_response(
        self, entity: Entity, request: m.OffsetsForLeaderEpochRequest
    ) -> m.OffsetsForLeaderEpochResponse:
        """In the order of the request; version 0 does not return the epoch."""
        results = {result.partition: result for result in _END_OFFSETS.read(entity)}
        partitions = []
        for query in request.partitions:
            result = results[query.partition]
            if entity.__version__ == 0:
                result = result._replace(leader_epoch=query.leader_epoch)
            partitions.append(result)
        return m.OffsetsForLeaderEpochResponse(tuple(partitions))
