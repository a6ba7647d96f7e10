"""InitProducerId: how an idempotent producer gets its producer id.

Sources: InitProducerIdRequest.json, KafkaApis.scala@2.6.3 handleInitProducerIdRequest.
"""

from __future__ import annotations

from emulator.kafka.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from emulator.worlds.wire.api import Api
from emulator.worlds.wire.tables import FieldTable


class InitProducerId(Api[InitProducerIdRequest, InitProducerIdResponse]):
    """The additional fields of version 3 (a producer id with a raised epoch) are for
    transactions."""

    name, key, sends = "InitProducerId", 22, InitProducerIdRequest
    newest = {"1.0": 0, "2.0": 1, "2.4": 2, "2.5": 3, "2.7": 4}
    request = FieldTable(
        InitProducerIdRequest,
        "transactional_id",
        also=lambda _: {"transaction_timeout": 60_000},
    )
    response = FieldTable(InitProducerIdResponse, "error=error_code producer_id producer_epoch")
