"""A client's connection to the modelled service: bytes in order, and the gate that stops them.

One `Link` per client process, one `Pipe` per direction of a connection. A pipe never reorders:
packets arrive in the order in which they were sent. While the link is cut bytes stop in both
directions and connections stay. Packets that had arrived at a paused receiver are not taken back.
Knows no sessions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from zk.wire import Direction, Lane, labelled

P = TypeVar("P")

Latency = Callable[[str, str], int]
"""(purpose, actor) -> microseconds; a fresh draw at every call."""

LATENCY_PURPOSES = {
    "zk_request": "a request, ping or end of connection on its way to the server",
    "zk_multi": "a request of several operations on its way to the server",
    "zk_process": "a request inside the server, until it is applied and logged",
    "zk_reply": "an answer on its way back",
    "zk_watch": "a watch event on its way to the client",
    "zk_connect": "a connection attempt, until the server reads its first packet",
    "zk_reconnect": "the random part, below 1 s, of the sleep before each attempt but the first",
}
"""What the model asks its latencies for; the actor is always the client's name."""


class Link:
    """The gate of one client: shared by all the connections that it makes one after the other."""

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
        """Stop bytes in both directions (or in these too), those in flight as well."""
        self.cut_directions += tuple(
            direction
            for direction in directions or Direction
            if direction not in self.cut_directions
        )
        for pipe in self.pipes:
            if pipe.direction in self.cut_directions:
                pipe.hold()

    def heal(self) -> None:
        """What was held passes, in order; of several connections the older one's bytes first."""
        if not self.cut_directions:
            return
        self.cut_directions = ()
        not_before_us: dict[str, int] = {}
        # Pipes in the order in which they were made. TCP gives no order between connections, but
        # what an older one had sent was on its way first.
        for pipe in list(self.pipes):
            earliest = not_before_us.get(pipe.purpose, 0)
            not_before_us[pipe.purpose] = pipe.release(earliest)


class Gated(Protocol):
    """What a link does to each of its pipes."""

    @property
    def purpose(self) -> str: ...

    @property
    def direction(self) -> Direction: ...

    def hold(self) -> None: ...

    def release(self, not_before_us: int) -> int: ...


class Pipe(Generic[P]):
    """One direction of one connection. `on_packet` runs on the receiver's lane, `on_pass` when the
    packet passes the gate (at once, or when it is healed)."""

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
        """Put `packet` on its way: it takes a latency drawn for `purpose`, and `process_us`. A
        connection's first packet needs both ways: TCP's handshake does."""
        if not self.open:
            return
        cut = self._link.cut_directions
        # Behind what is held already nothing may pass, though its own way is open.
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
        # TCP keeps the order: a packet that drew a shorter latency waits for the one before it.
        if due < self._last_due_us:
            due = self._last_due_us
        self._last_due_us = due
        self._packets.append((due, packet))
        self._lane.call_later(due - now, self._arrive)

    @property
    def on_behalf_of(self) -> str:
        """Which packet is next, and whose connection it is."""
        client = self._link.client
        return f"{type(self._packets[0][1]).__name__} {client}" if self._packets else client

    @labelled("arrive")
    def arrive(self) -> None:
        """One packet for each call that falls due; a call whose packet was held finds none."""
        packets = self._packets
        if packets and packets[0][0] <= self._now_us():
            self._on_packet(packets.popleft()[1])

    def hold(self) -> None:
        """Stop what is in flight; what has arrived at the receiver stays with it."""
        # From the youngest back: due times never fall within a pipe.
        now = self._now_us()
        while self._packets and self._packets[-1][0] > now:
            self._in_flight.appendleft(self._packets.pop()[1])

    def release(self, not_before_us: int) -> int:
        """Send what was held; returns when the last of it arrives. Where nobody receives any more
        it passes the gate all the same."""
        self._last_due_us = max(self._last_due_us, not_before_us)
        if not self.open:
            self._link.pipes.remove(self)
            for packet, _, _ in self._held:
                assert self._on_pass is not None
                self._on_pass(packet)
            return self._last_due_us
        # These had passed the gate already, and are not reported again; those behind it had not.
        in_flight, self._in_flight = self._in_flight, deque()
        for packet in in_flight:
            self._carry(packet, self.purpose, 0)
        held, self._held = self._held, deque()
        for packet, purpose, process_us in held:
            self.send(packet, purpose, process_us)
        return self._last_due_us

    def close(self) -> None:
        """The receiver is gone: nothing is delivered any more. What is held at the gate stays there
        where somebody looks on."""
        self._packets.clear()
        self._in_flight.clear()
        if self._on_pass is None:
            self._held.clear()
        if self.open:
            self.open = False
            if not self._held:
                self._link.pipes.remove(self)
