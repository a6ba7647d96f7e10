"""InitProducerId: how an idempotent producer gets its producer id.

Sources: InitProducerIdRequest.json, KafkaApis.scala@2.6.3 handleInitProducerIdRequest.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from emulator.worlds.wire.api import Api, Sent
from emulator.worlds.wire.entities import Entity, Values
from emulator.worlds.wire.partitions import error_of


class InitProducerId(Api[InitProducerIdRequest, InitProducerIdResponse]):
    """What version 3 asks about (a producer id that had its epoch raised) is of transactions."""

    name, key, sends = "InitProducerId", 22, InitProducerIdRequest
    newest = {"1.0": 0, "2.0": 1, "2.4": 2, "2.5": 3, "2.7": 4}

    def read_request(self, entity: Entity) -> Sent:
        return Sent((InitProducerIdRequest(entity.transactional_id),))

    def write_response(self, entity: Entity, responses: Sequence[InitProducerIdResponse]) -> Values:
        (response,) = responses
        return {
            "throttle_time": 0,
            "error_code": response.error,
            "producer_id": response.producer_id,
            "producer_epoch": response.producer_epoch,
        }

    def write_request(self, request: InitProducerIdRequest) -> Values:
        return {"transactional_id": request.transactional_id, "transaction_timeout": 60_000}

    def read_response(
        self, entity: Entity, request: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        error = error_of(entity.error_code)
        return InitProducerIdResponse(error, entity.producer_id, entity.producer_epoch)
