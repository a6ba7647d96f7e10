"""A znode's bytes <-> a typed struct: strict about types, tolerant of order, white space and
unknown fields.

Malformed data becomes `MalformedZNode` with path and field. `zk.client.codec` defines the payloads.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

import msgspec

from zk.errors import MalformedZNode

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""Kafka's `to[Int]` accepts a number that fits a Java int."""

S = TypeVar("S")

_AT = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_FIELD = re.compile(r"^Object missing required field `([^`]*)`")


def decode_json(path: str, data: bytes | None, decoder: msgspec.json.Decoder[S]) -> S:
    """The struct in `data`; raises MalformedZNode."""
    if not data:
        raise MalformedZNode(path, "", "no data" if data is None else "empty")
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise _named(path, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedZNode(path, "", f"invalid JSON: {error}") from None
    except RecursionError:
        raise MalformedZNode(path, "", "invalid JSON: nested too deeply") from None


def decode_number(path: str, data: bytes | None, low: int, high: int) -> int:
    """A plain decimal number without JSON, within [low, high]."""
    text = "" if data is None else data.decode("utf-8", "replace")
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise MalformedZNode(path, "", f"no number: {text[:40]!r}")
    number = int(text)
    if not low <= number <= high:
        raise MalformedZNode(path, "", f"out of range: {number}")
    return number


def decode_number_text(path: str, field: str, text: str) -> int:
    """A field with a number written as a string, as timestamps are."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise MalformedZNode(path, field, f"no number: {text[:40]!r}")
    return int(text)


def _named(path: str, message: str) -> MalformedZNode:
    """Extract the field's name from msgspec's message."""
    at = _AT.search(message)
    parent = at.group(1) if at else ""
    problem = message[: at.start()] if at else message
    missing = _FIELD.match(problem)
    if missing is None:
        return MalformedZNode(path, parent, problem)
    field = f"{parent}.{missing.group(1)}" if parent else missing.group(1)
    return MalformedZNode(path, field, "missing")
