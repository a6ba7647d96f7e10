"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch.

Owns what of a produce request cannot be given to the log (no batch, a wrong checksum), which is
answered here, partition by partition. Older record formats are not spoken. Sources:
ProduceRequest.java, FetchRequest.java, FetchResponse.java@2.6.3; spec §11.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import (
    EpochEndOffset,
    EpochQuery,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.api import Api, Knows, Sent, by_topic, error_of, in_turn
from emulator.worlds.wire.entities import Values, milliseconds
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.records import filled, produced, read_batches, write_batches

LATEST, EARLIEST = -1, -2


class Produce(Api):
    """From version 3 on (record format 2)."""

    name, key, sends, least = "Produce", 0, ProduceRequest, 3
    newest = {"1.0": 5, "2.0": 6, "2.1": 7, "2.4": 8}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        partitions, refused = [], []
        for topic in entity.topic_data:
            for part in topic.partition_data:
                partition = TopicPartition(topic.name, part.index)
                data = bytes(part.records or b"")
                try:
                    count, size = produced(data)
                except Malformed:
                    refused.append(ProducedPartition(partition, Errors.CORRUPT_MESSAGE, -1))
                else:
                    partitions.append(ProducePartition(partition, count, size, data))
        request = ProduceRequest(entity.acks, milliseconds(entity.timeout), tuple(partitions))
        return Sent((request,), tuple(refused))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values | None:
        if entity.acks == 0:
            return None
        (response,) = responses
        grouped = by_topic([*response.partitions, *sent.rest])
        return {
            "responses": [
                {"name": t, "partition_responses": [_produced(p) for p in parts]}
                for t, parts in grouped
            ],
            "throttle_time": 0,
        }

    def ask(self, request: ProduceRequest, now_ms: int) -> Values:
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
            for topic, parts in by_topic(request.partitions)
        ]
        return {
            "transactional_id": None,
            "acks": request.acks,
            "timeout": request.timeout_ms,
            "topic_data": data,
        }

    def response(self, entity: Any, request: Any) -> ProduceResponse:
        found = [
            ProducedPartition(
                TopicPartition(t.name, p.index), error_of(p.error_code), p.base_offset
            )
            for t in entity.responses
            for p in t.partition_responses
        ]
        return ProduceResponse(tuple(found))


def _produced(produced: ProducedPartition) -> Values:
    return {
        "index": produced.partition.partition,
        "error_code": produced.error,
        "base_offset": produced.base_offset,
        "log_append_time": None,
        "log_start_offset": 0 if produced.error is Errors.NONE else -1,
        "record_errors": (),
        "error_message": None,
    }


class Fetch(Api):
    """From version 4 on (record format 2)."""

    name, key, sends, least = "Fetch", 1, FetchRequest, 4
    newest = {"1.0": 6, "1.1": 7, "2.0": 8, "2.1": 10, "2.3": 11, "2.7": 12}
    cap = 12

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        wanted = tuple(
            FetchPartition(
                TopicPartition(t.topic, p.partition),
                getattr(p, "current_leader_epoch", -1),
                p.fetch_offset,
                getattr(p, "log_start_offset", -1),
                p.partition_max_bytes,
            )
            for t in entity.topics
            for p in t.partitions
        )
        forgotten = tuple(
            TopicPartition(t.topic, n)
            for t in getattr(entity, "forgotten_topics_data", ())
            for n in t.partitions
        )
        request = FetchRequest(
            entity.replica_id,
            milliseconds(entity.max_wait),
            entity.min_bytes,
            entity.max_bytes,
            getattr(entity, "session_id", 0),
            getattr(entity, "session_epoch", -1),
            wanted,
            forgotten,
        )
        return Sent((request,))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        return {
            "throttle_time": 0,
            "error_code": response.error,
            "session_id": response.session_id,
            "responses": [
                {"topic": t, "partitions": [_fetched(p) for p in parts]}
                for t, parts in in_turn(response.partitions)
            ],
        }

    def ask(self, request: FetchRequest, now_ms: int) -> Values:
        forgotten: dict[str, list[int]] = {}
        for topic, number in request.forgotten:
            forgotten.setdefault(topic, []).append(number)
        return {
            "replica_id": request.replica_id,
            "max_wait": request.max_wait_ms,
            "min_bytes": request.min_bytes,
            "max_bytes": request.max_bytes,
            "isolation_level": 0,
            "session_id": request.session_id,
            "session_epoch": request.session_epoch,
            "topics": [
                {"topic": t, "partitions": [_wanted(p) for p in parts]}
                for t, parts in in_turn(request.partitions)
            ],
            "forgotten_topics_data": [
                {"topic": t, "partitions": numbers} for t, numbers in forgotten.items()
            ],
        }

    def response(self, entity: Any, request: Any) -> FetchResponse:
        found = [
            FetchedPartition(
                TopicPartition(t.topic, p.partition_index),
                error_of(p.error_code),
                p.high_watermark,
                getattr(p, "log_start_offset", -1),
                tuple(read_batches(bytes(p.records or b""))),
            )
            for t in entity.responses
            for p in t.partitions
        ]
        error = error_of(entity.error_code) if hasattr(entity, "error_code") else Errors.NONE
        return FetchResponse(error, getattr(entity, "session_id", 0), tuple(found))


def _wanted(wanted: FetchPartition) -> Values:
    return {
        "partition": wanted.partition.partition,
        "current_leader_epoch": wanted.current_leader_epoch,
        "fetch_offset": wanted.fetch_offset,
        "last_fetched_epoch": -1,
        "log_start_offset": wanted.log_start_offset,
        "partition_max_bytes": wanted.max_bytes,
    }


def _fetched(fetched: FetchedPartition) -> Values:
    return {
        "partition_index": fetched.partition.partition,
        "error_code": fetched.error,
        "high_watermark": fetched.high_watermark,
        "last_stable_offset": fetched.high_watermark,
        "log_start_offset": fetched.log_start_offset,
        "aborted_transactions": None,
        "preferred_read_replica": -1,
        "records": write_batches(fetched.batches),
    }


class ListOffsets(Api):
    """Ours asks for one partition, Kafka's for many. A time stamp that is none of the two special
    ones cannot be looked up: records have no contents that we know."""

    name, key, sends, least = "ListOffsets", 2, ListOffsetsRequest, 1
    newest = {"1.0": 2, "2.0": 3, "2.1": 4, "2.2": 5}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        requests, refused = [], []
        for topic in entity.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                epoch = getattr(part, "current_leader_epoch", -1)
                if part.timestamp in (LATEST, EARLIEST):
                    early = part.timestamp == EARLIEST
                    requests.append(ListOffsetsRequest(entity.replica_id, partition, epoch, early))
                else:
                    refused.append(partition)
        return Sent(tuple(requests), tuple(refused))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        asked = [q.partition for q in sent.requests if isinstance(q, ListOffsetsRequest)]
        told = list(zip(asked, responses, strict=True))
        unsupported = ListOffsetsResponse(Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT, -1)
        told += [(partition, unsupported) for partition in sent.rest]
        topics: dict[str, list[Values]] = {}
        for partition, response in told:
            topics.setdefault(partition.topic, []).append(
                {
                    "partition_index": partition.partition,
                    "error_code": response.error,
                    "timestamp": -1,
                    "offset": response.offset,
                    "leader_epoch": response.leader_epoch,
                }
            )
        found = [{"name": t, "partitions": parts} for t, parts in topics.items()]
        return {"throttle_time": 0, "topics": found}

    def ask(self, request: ListOffsetsRequest, now_ms: int) -> Values:
        wanted = {
            "partition_index": request.partition.partition,
            "current_leader_epoch": request.current_leader_epoch,
            "timestamp": EARLIEST if request.earliest else LATEST,
        }
        topics = [{"name": request.partition.topic, "partitions": [wanted]}]
        return {"replica_id": request.replica_id, "isolation_level": 0, "topics": topics}

    def response(self, entity: Any, request: Any) -> ListOffsetsResponse:
        found = entity.topics[0].partitions[0]
        return ListOffsetsResponse(error_of(found.error_code), found.offset)


class OffsetForLeaderEpoch(Api):
    """What followers ask before they truncate."""

    name, key, sends = "OffsetForLeaderEpoch", 23, OffsetsForLeaderEpochRequest
    newest = {"1.0": 0, "2.0": 1, "2.1": 2, "2.3": 3}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        queries = [
            EpochQuery(
                TopicPartition(t.topic, p.partition),
                getattr(p, "current_leader_epoch", -1),
                p.leader_epoch,
            )
            for t in entity.topics
            for p in t.partitions
        ]
        replica = getattr(entity, "replica_id", -2)
        return Sent((OffsetsForLeaderEpochRequest(replica, tuple(queries)),))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        topics = [
            {
                "topic": t,
                "partitions": [
                    {
                        "error_code": p.error,
                        "partition": p.partition.partition,
                        "leader_epoch": p.leader_epoch,
                        "end_offset": p.end_offset,
                    }
                    for p in parts
                ],
            }
            for t, parts in by_topic(response.partitions)
        ]
        return {"throttle_time": 0, "topics": topics}

    def ask(self, request: OffsetsForLeaderEpochRequest, now_ms: int) -> Values:
        topics = [
            {
                "topic": t,
                "partitions": [
                    {
                        "partition": q.partition.partition,
                        "current_leader_epoch": q.current_leader_epoch,
                        "leader_epoch": q.leader_epoch,
                    }
                    for q in queries
                ],
            }
            for t, queries in by_topic(request.partitions)
        ]
        return {"replica_id": request.replica_id, "topics": topics}

    def response(
        self, entity: Any, request: OffsetsForLeaderEpochRequest
    ) -> OffsetsForLeaderEpochResponse:
        """In the order of the request; version 0 does not say which epoch it found."""
        found = {
            TopicPartition(t.topic, p.partition): p for t in entity.topics for p in t.partitions
        }
        return OffsetsForLeaderEpochResponse(
            tuple(_end_offset(q, found[q.partition]) for q in request.partitions)
        )


def _end_offset(query: EpochQuery, found: Any) -> EpochEndOffset:
    epoch = getattr(found, "leader_epoch", query.leader_epoch)
    return EpochEndOffset(query.partition, error_of(found.error_code), epoch, found.end_offset)
