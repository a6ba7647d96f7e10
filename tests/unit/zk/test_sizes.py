"""The size of a request from its name, path and payload is that of its encoding."""

from __future__ import annotations

import pytest
from hypothesis import given

from emulator.kafka.broker.context import describe
from tests.unit.zk.test_jute import requests
from zk.ops import Check, Multi, Request, SetData
from zk.paths import CONTROLLER_EPOCH
from zk.real.jute import encode_request, frame
from zk.sizes import request_bytes


@given(requests)
def test_it_is_that_of_the_encoding_whatever_versions_and_watches(request: Request) -> None:
    if isinstance(request, Multi):
        return
    op, path, _, _ = describe(request)
    payload = getattr(request, "data", None)
    assert request_bytes(op, path, payload or b"") == len(frame(encode_request(7, request)))


def test_a_fenced_write_carries_its_check() -> None:
    write = SetData("/brokers/topics/orders/partitions/0/state", b"{}", 3)
    fenced = Multi((Check(CONTROLLER_EPOCH, 5), write))
    op, path, _, payload = describe(fenced)
    assert request_bytes(op, path, payload.encode()) == len(frame(encode_request(1, fenced)))


def test_a_strangers_word_is_no_request() -> None:
    with pytest.raises(AssertionError, match="frobnicate: no such request"):
        request_bytes("frobnicate", "/")
