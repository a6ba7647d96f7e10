"""A client's connection to the modelled service: ordered packets, and a gate that can stop them.

There is one `Link` per client process and one `Pipe` per direction of a connection. A pipe never
reorders: packets arrive in the order in which they were sent. While the link is cut, packets stop
in both directions but connections stay open. Packets that have already arrived at a paused receiver
stay there. A link does not know sessions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from zk.wire import Direction, Lane, labelled

P = TypeVar("P")

Latency = Callable[[str, str], int]
"""(purpose, actor) -> microseconds; a new draw for each call."""

LATENCY_PURPOSES = {
    "zk_request": "a request, ping or end of connection on its way to the server",
    "zk_multi": "a request of several operations on its way to the server",
    "zk_process": "a request inside the server, until it is applied and logged",
    "zk_reply": "an answer on its way back",
    "zk_watch": "a watch event on its way to the client",
    "zk_open": "a new client, until its first connection attempt",
    "zk_connect": "a connection attempt, until the server reads its first packet",
    "zk_reconnect": "the random part, below 1 s, of the sleep before each attempt but the first",
}
"""The purposes of the model's latency draws; the actor is always the client's name."""


class Link:
    """The gate of one client, shared by its consecutive connections."""

    __slots__ = ("client", "cut_directions", "drawn_us", "extra_us", "latency", "network", "pipes")

    def __init__(self, client: str, network: Lane, latency: Latency) -> None:
        self.client = client
        self.network = network
        self.latency = latency
        self.cut_directions: tuple[Direction, ...] = ()
        self.extra_us = 0
        self.drawn_us: Callable[[Direction], int] | None = None
        self.pipes: list[Gated] = []

    def cut(self, *directions: Direction) -> None:
        """Stop packets in both directions (or in these), including those in flight."""
        self.cut_directions += tuple(
            direction
            for direction in directions or Direction
            if direction not in self.cut_directions
        )
        for pipe in self.pipes:
            if pipe.direction in self.cut_directions:
                pipe.hold()

    def heal(self) -> None:
        """Release held packets in order; older connections first."""
        if not self.cut_directions:
            return
        self.cut_directions = ()
        not_before_us: dict[str, int] = {}
        # In order of creation. TCP has no order between connections, but the packets of an older
        # connection were sent first.
        for pipe in list(self.pipes):
            earliest = not_before_us.get(pipe.purpose, 0)
            not_before_us[pipe.purpose] = pipe.release(earliest)


class Gated(Protocol):
    """The operations of a link on its pipes."""

    @property
    def purpose(self) -> str: ...

    @property
    def direction(self) -> Direction: ...

    def hold(self) -> None: ...

    def release(self, not_before_us: int) -> int: ...


class Pipe(Generic[P]):
    """One direction of one connection. `on_packet` runs on the receiver's lane; `on_pass` runs when
    a packet passes the gate (at once, or after a heal)."""

    __slots__ = (
        "_arrive",
        "_held",
        "_in_flight",
        "_lane",
        "_last_due_us",
        "_link",
        "_now_us",
        "_on_packet",
        "_on_pass",
        "_packets",
        "direction",
        "open",
        "purpose",
    )

    def __init__(
        self,
        link: Link,
        lane: Lane,
        direction: Direction,
        on_packet: Callable[[P], None],
        on_pass: Callable[[P], None] | None = None,
    ) -> None:
        self._link = link
        self._lane = lane
        self._now_us = link.network.now_us
        self._on_packet = on_packet
        self._on_pass = on_pass
        self._packets: deque[tuple[int, P]] = deque()
        self._held: deque[tuple[P, str, int]] = deque()
        self._in_flight: deque[P] = deque()
        self._last_due_us = 0
        self._arrive = self.arrive
        self.direction = direction
        self.purpose = "zk_request" if direction is Direction.TO_SERVER else "zk_reply"
        self.open = True
        link.pipes.append(self)

    def send(self, packet: P, purpose: str, process_us: int = 0) -> None:
        """Send `packet` with a latency drawn for `purpose`, plus `process_us`. A connection's first
        packet needs both directions because of TCP's handshake."""
        if not self.open:
            return
        cut = self._link.cut_directions
        # Nothing may pass packets that are already held, even if this direction is open.
        if cut and (self.direction in cut or purpose == "zk_connect" or self._held):
            self._held.append((packet, purpose, process_us))
            return
        if self._on_pass is not None:
            self._on_pass(packet)
        self._carry(packet, purpose, process_us)

    def _carry(self, packet: P, purpose: str, process_us: int) -> None:
        link = self._link
        now = self._now_us()
        due = now + link.latency(purpose, link.client) + link.extra_us + process_us
        if link.drawn_us is not None:
            due += link.drawn_us(self.direction)
        # TCP keeps the order: a packet with a shorter latency waits for the one before it.
        if due < self._last_due_us:
            due = self._last_due_us
        self._last_due_us = due
        self._packets.append((due, packet))
        self._lane.call_later(due - now, self._arrive)

    @property
    def on_behalf_of(self) -> str:
        """The next packet's type and the client of the connection, for labels of schedules."""
        client = self._link.client
        return f"{type(self._packets[0][1]).__name__} {client}" if self._packets else client

    @labelled("arrive")
    def arrive(self) -> None:
        """Deliver one packet per due call; if that packet was held, the call does nothing."""
        packets = self._packets
        if packets and packets[0][0] <= self._now_us():
            self._on_packet(packets.popleft()[1])

    def hold(self) -> None:
        """Stop the packets in flight; those that have arrived stay with the receiver."""
        # From the youngest backwards: due times never decrease within a pipe.
        now = self._now_us()
        while self._packets and self._packets[-1][0] > now:
            self._in_flight.appendleft(self._packets.pop()[1])

    def release(self, not_before_us: int) -> int:
        """Send the held packets; returns the time at which the last one arrives. If the receiver is
        gone the packets still pass the gate."""
        self._last_due_us = max(self._last_due_us, not_before_us)
        if not self.open:
            self._link.pipes.remove(self)
            for packet, _, _ in self._held:
                assert self._on_pass is not None
                self._on_pass(packet)
            return self._last_due_us
        # Packets in flight have already passed the gate and are not reported again; those behind
        # them have not.
        in_flight, self._in_flight = self._in_flight, deque()
        for packet in in_flight:
            self._carry(packet, self.purpose, 0)
        held, self._held = self._held, deque()
        for packet, purpose, process_us in held:
            self.send(packet, purpose, process_us)
        return self._last_due_us

    def close(self) -> None:
        """The receiver is gone: nothing is delivered any more. Packets at the gate stay there if an
        observer has to see them pass."""
        self._packets.clear()
        self._in_flight.clear()
        if self._on_pass is None:
            self._held.clear()
        if self.open:
            self.open = False
            if not self._held:
                self._link.pipes.remove(self)
