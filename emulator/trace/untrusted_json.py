"""JSON of files that may hold anything: one error for all that can be wrong with it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode_untrusted(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """msgspec.DecodeError, and nothing else: msgspec itself raises others for text that is not
    UTF-8, and for what is nested without end."""
    try:
        return decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
