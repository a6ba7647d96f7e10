"""The directions between two processes, each with the conditions that faults set.

The reader of a TCP connection sees no loss, duplication or reordering: lost data is sent again and
arrives later, and everything behind it waits (ADR 7). A direction can therefore only delay bytes:
while it is cut, by a fixed delay, by drawn times, by retransmission times, or by its bandwidth.
Knows the size of messages but not connections.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from emulator.kafka.protocol.messages import FetchRequest, FetchResponse, ProduceRequest

RTO_MIN_US = 200_000
"""Linux TCP_RTO_MIN: when what was lost is sent again, first; doubled each time (RFC 6298)."""
SYN_RTO_US = 1_000_000
# Linux retries 15 times (tcp_retries2). Nine take 102 s, longer than any request waits.
RESENDS_MAX = 9

HEADER_BYTES, PARTITION_BYTES = 60, 50
FETCH_BYTES, FETCHED_BYTES = (67, 36), (22, 50)
"""About what a message takes on the wire beside its records, once and for each partition: any
message, a Fetch (v11, with a short topic name) and its response. A follower on a narrow link
fetches again when it has the last response, so each one is larger than the one before, and small
sizes matter."""


class Stream(Protocol):
    """A sequence of draws (emulator.kernel.rng.Stream)."""

    def bits(self) -> int: ...

    def below(self, n: int) -> int: ...


class LinkConditions(msgspec.Struct, frozen=True):
    """The random conditions of a direction: half of the messages take between `low_us` and
    `typical_us`, half up to `high_us`; with probability `loss` a message is lost, at each
    transmission.
    """

    low_us: int = 0
    typical_us: int = 0
    high_us: int = 0
    loss: float = 0.0

    def drawn_us(self, stream: Stream) -> int:
        """The delay of one message."""
        return self._latency_us(stream) + self._resending_us(stream, RTO_MIN_US)

    def handshake_us(self, stream: Stream) -> int:
        """The delay of a connection's first packet."""
        return self._latency_us(stream) + self._resending_us(stream, SYN_RTO_US)

    def _latency_us(self, stream: Stream) -> int:
        if not self.high_us:
            return 0
        if stream.bits() & 1:
            return self.typical_us + stream.below(self.high_us - self.typical_us + 1)
        return self.low_us + stream.below(self.typical_us - self.low_us + 1)

    def _resending_us(self, stream: Stream, rto_us: int) -> int:
        if not self.loss:
            return 0
        limit, lost = int(self.loss * (1 << 64)), 0
        while lost < RESENDS_MAX and stream.bits() < limit:
            lost += 1
        # RTO, 2 RTO, 4 RTO ...: the sum of the waits for `lost` consecutive losses.
        return rto_us * ((1 << lost) - 1)


class LinkDirection:
    """From one process to another: whether messages are held, and how much they are delayed."""

    __slots__ = (
        "_stream",
        "bytes_per_s",
        "conditions",
        "cut",
        "delay_us",
        "disturbed",
        "held",
    )

    def __init__(self) -> None:
        self.cut = self.disturbed = False
        self.delay_us = self.bytes_per_s = 0
        self.conditions = LinkConditions()
        self.held: list[Callable[[], None]] = []
        self._stream: Callable[[], Stream]

    def behave(self, conditions: LinkConditions, stream: Callable[[], Stream]) -> None:
        """Set the conditions from now on; `stream` provides the random numbers."""
        self.conditions, self._stream = conditions, stream
        self._look()

    def narrow(self, bytes_per_s: int) -> None:
        """Limit the bandwidth of each connection; 0 means no limit."""
        self.bytes_per_s = bytes_per_s
        self._look()

    def _look(self) -> None:
        self.disturbed = bool(self.bytes_per_s) or self.conditions != LinkConditions()

    def passing_us(self, message: object) -> int:
        """How long a message occupies its connection, which has this bandwidth to itself: that is
        how the proxies between real brokers limit it. Others do not wait for its records."""
        return size_of(message) * 1_000_000 // self.bytes_per_s if self.bytes_per_s else 0

    def drawn_us(self) -> int:
        """The random part of the delay."""
        return (
            self.conditions.drawn_us(self._stream()) if self.conditions != LinkConditions() else 0
        )

    def handshake_us(self) -> int:
        """The delay added to a connection's handshake."""
        return (
            self.conditions.handshake_us(self._stream())
            if self.conditions != LinkConditions()
            else 0
        )

    def heal(self) -> None:
        """End a cut: held messages pass in order."""
        self.cut = False
        held, self.held = self.held, []
        for pass_on in held:
            pass_on()


def size_of(message: object) -> int:
    """The approximate size of a message in bytes: its records, and a few bytes for each
    partition."""
    header, each = HEADER_BYTES, PARTITION_BYTES
    if isinstance(message, FetchRequest | FetchResponse):
        header, each = FETCH_BYTES if isinstance(message, FetchRequest) else FETCHED_BYTES
    named = getattr(message, "partitions", None) or getattr(message, "states", None) or ()
    size = header + each * len(named)
    if isinstance(message, FetchResponse | ProduceRequest):
        size += sum(partition.size for partition in message.partitions)
    return size
