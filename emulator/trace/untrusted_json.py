"""Decoding of JSON from untrusted files and znodes, with one error for everything that can be
wrong."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode_untrusted(data: bytes | str, decoder: msgspec.json.Decoder[T]) -> T:
    """Raises only msgspec.DecodeError. msgspec itself raises others for text that is not UTF-8 and
    for excessive nesting."""
    try:
        return decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
