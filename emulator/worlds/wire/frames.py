"""Frames and headers: a length, the API and its version, the client, the correlation id.

Owns the limit on frames, and the response to an unknown version (ApiVersions). Source:
RequestHeader.java, NetworkReceive.java, ApiVersionsRequest.java@2.6.3; spec §11.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable

import msgspec
from kio.schema.errors import ErrorCode

from emulator.kafka.protocol.messages import (
    ApiVersionsResponse,
    Request,
    Response,
    UpdateMetadataRequest,
)
from emulator.worlds.wire.api import Api, Knows, Sent, apis
from emulator.worlds.wire.decoder import read
from emulator.worlds.wire.discovery import ApiVersions, ranges_of
from emulator.worlds.wire.entities import (
    Entity,
    Schema,
    Values,
    make,
    request_schema,
    response_schema,
    write,
)
from emulator.worlds.wire.errors import Malformed, Unsupported

MAX_FRAME = 100 * 1024 * 1024
"""socket.request.max.bytes, as Kafka has it by default."""

_START = struct.Struct(">hhi")
"""API key, version and correlation id: first in the header of every version."""


def length_of(head: bytes, most: int = MAX_FRAME) -> int:
    """The size of what follows a frame's first four bytes."""
    (length,) = struct.unpack(">i", head)
    if length < 0:
        raise Malformed(f"a frame of {length} bytes")
    if length > most:
        raise Malformed(f"a frame of {length} bytes; {most} at most")
    return int(length)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class ReceivedRequest(msgspec.Struct, frozen=True):
    """A received request: the broker's task, and how the response is written."""

    api: Api[Request, Response]
    version: int
    correlation_id: int
    client_id: str
    entity: Entity
    sent: Sent

    def answer(self, responses: Iterable[Response]) -> bytes | None:
        """The response frame; None if there is no response (acks=0)."""
        values = self.api.write_response(self.entity, [*responses, *self.sent.answered])
        if values is None:
            return None
        return _response(self.api.key, self.version, self.correlation_id, values)


def _response(key: int, version: int, correlation_id: int, values: Values) -> bytes:
    schema = response_schema(key, version)
    out = io.BytesIO()
    write(out, schema.__header_schema__(correlation_id=correlation_id))
    # Throttle time is always 0; every response but those to the controller has this field.
    write(out, make(schema, {"throttle_time": 0, **values}))
    return framed(out.getvalue())


class UnknownApiVersionsVersion(Exception):
    """An ApiVersions request of an unsupported version; `answer` is the response to it
    (KIP-511)."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("ApiVersions of an unknown version")
        self.answer = answer


_loaded: set[tuple[int, int]] = set()
"""APIs and versions whose schemas have been read."""


def has_schema(payload: bytes, knows: Knows) -> bool:
    """Whether a request can be read at once. The first one of an API and version cannot: its schema
    is created by an import, which takes 5 to 20 ms."""
    if len(payload) < _START.size:
        return True
    key, version, _ = _START.unpack_from(payload)
    api = apis().get(key)
    least, most = knows.get(api.name, (1, 0)) if api is not None else (1, 0)
    return (key, version) in _loaded or not least <= version <= most


def load_schema(payload: bytes) -> None:
    """Any thread: create the schema of a request that has none yet. Raises OSError: its modules are
    files, and the process may have no descriptor left."""
    key, version, _ = _START.unpack_from(payload)
    load_schema_of(key, version)


def load_schema_of(key: int, version: int) -> None:
    """Any thread: create the schemas of this API and version. Raises OSError."""
    request_schema(key, version)
    response_schema(key, version)
    _loaded.add((key, version))


def arrived(payload: bytes, knows: Knows) -> ReceivedRequest:
    """Read one request. `knows` has the versions of each API that this broker supports."""
    if len(payload) < _START.size:
        raise Malformed(f"a request of {len(payload)} bytes")
    key, version, correlation_id = _START.unpack_from(payload)
    api = apis().get(key)
    if api is None or api.name not in knows:
        raise Unsupported(f"API {key}")
    least, most = knows[api.name]
    if not least <= version <= most:
        # Any other API with an unknown version closes the connection, as in Kafka: the format of
        # its response is unknown. Clients use ApiVersions to find the supported versions.
        if key == ApiVersions.key:
            values = {
                "error_code": ErrorCode.unsupported_version,
                "api_keys": ranges_of(_newest(knows)),
            }
            raise UnknownApiVersionsVersion(_response(key, 0, correlation_id, values))
        raise Unsupported(f"{api.name} version {version}: {least} to {most}")
    schema = request_schema(key, version)
    header, offset = read(schema.__header_schema__, payload, 0)
    client_id = getattr(header, "client_id", None) or ""
    is_alike = api.alike_from is not None and version >= api.alike_from
    if is_alike and (again := _read_again(key, version, payload, offset)) is not None:
        entity, sent = again
        return ReceivedRequest(api, version, correlation_id, client_id, entity, sent)
    entity, end = read(schema, payload, offset, api.most_entries)
    # Kafka ignores the remaining bytes. Here the request counts as malformed.
    padding = api.padding if schema.__flexible__ else 0
    if len(payload) - end > padding or any(payload[end:]):
        raise Malformed(f"{api.name}: {len(payload) - end} bytes behind its end")
    try:
        sent = api.read_request(entity)
    # Values that the schema allows and our requests cannot represent are malformed.
    except (ValueError, KeyError, AttributeError) as error:
        raise Malformed(f"{api.name}: {error}") from None
    if key == ApiVersions.key:  # an API does not know which versions its broker speaks
        sent = Sent((), (_newest(knows),))
    if is_alike:
        _last_read[key] = _Alike(version, _without_epoch(payload, offset), sent.requests[0], entity)
    return ReceivedRequest(api, version, correlation_id, client_id, entity, sent)


class _Alike(msgspec.Struct, frozen=True):
    """The last request of an API that all brokers get: its body without the broker epoch."""

    version: int
    body: bytes
    request: Request
    entity: Entity | None = None


_last_read: dict[int, _Alike] = {}
_last_written: dict[int, _Alike] = {}
"""The last request of each API. Brokers of one process share it: memory and time of one."""

_EPOCH, _BEFORE_EPOCH = struct.Struct(">q"), 8
"""The broker epoch, the only part that differs, follows the controller's id and epoch (4 bytes
each)."""


def _without_epoch(payload: bytes, offset: int) -> bytes:
    at = offset + _BEFORE_EPOCH
    return payload[offset:at] + payload[at + _EPOCH.size :]


def _read_again(key: int, version: int, payload: bytes, offset: int) -> tuple[Entity, Sent] | None:
    """The request, if another broker of this process has read the same body already."""
    last = _last_read.get(key)
    if last is None or last.version != version or last.body != _without_epoch(payload, offset):
        return None
    assert last.entity is not None
    (epoch,) = _EPOCH.unpack_from(payload, offset + _BEFORE_EPOCH)
    request = msgspec.structs.replace(last.request, broker_epoch=epoch)
    return last.entity, Sent((request,))


def _body_of(api: Api[Request, Response], request: Request, version: int, schema: Schema) -> bytes:
    """A request's body. One that all brokers get is written once."""
    if api.alike_from is None or version < api.alike_from:
        return _written(make(schema, api.write_request(request)))
    assert isinstance(request, UpdateMetadataRequest)
    epoch, last = request.broker_epoch, _last_written.get(api.key)
    first = msgspec.structs.replace(request, broker_epoch=0)
    if last is None or last.version != version or last.request != first:
        body = _written(make(schema, api.write_request(first)))
        last = _last_written[api.key] = _Alike(version, _without_epoch(body, 0), first)
    return last.body[:_BEFORE_EPOCH] + _EPOCH.pack(epoch) + last.body[_BEFORE_EPOCH:]


def _written(entity: Entity) -> bytes:
    out = io.BytesIO()
    write(out, entity)
    return out.getvalue()


def _newest(knows: Knows) -> ApiVersionsResponse:
    offered = {
        key: min(knows[api.name][1], api.most_sent)
        for key, api in apis().items()
        if api.name in knows
    }
    return ApiVersionsResponse(offered)


def request_frame(request: Request, version: int, correlation_id: int, client_id: str) -> bytes:
    """A request frame of an emulated broker or client."""
    api = api_of(request)
    schema = request_schema(api.key, version)
    head = {
        "request_api_key": api.key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    header = _written(make(schema.__header_schema__, head))
    return framed(header + _body_of(api, request, version, schema))


def response_from(payload: bytes, request: Request, version: int) -> tuple[int, Response]:
    """(correlation id, response) of a response frame."""
    api = api_of(request)
    schema = response_schema(api.key, version)
    header, offset = read(schema.__header_schema__, payload, 0)
    entity, end = read(schema, payload, offset)
    if end != len(payload):
        raise Malformed(f"{api.name}: {len(payload) - end} bytes behind its end")
    try:
        return header.correlation_id, api.read_response(entity, request)
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise Malformed(f"{api.name}: {error}") from None


def api_of(request: Request) -> Api[Request, Response]:
    for api in apis().values():
        if api.sends is type(request):
            return api
    raise AssertionError(f"no API carries {type(request).__name__}")
