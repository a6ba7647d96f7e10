"""How long things take in virtual time: declared ranges, drawn per purpose and actor.

The table is versioned data, written down before any search: for each purpose quantiles in
microseconds, warm and, for what cold code runs first, cold (with how many uses are cold). Sources:
the ranges in the recordings' README. Nothing here knows what is drawn for whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from emulator.kernel.rng import Chance
from emulator.kernel.scheduler import Task

VERSION = 4
_BUCKETS = 256

Quantiles = tuple[tuple[float, int], ...]
"""(share below, microseconds), from 0 to 1."""


def _quick(typical_us: int) -> Quantiles:
    """A message or a short step: mostly near `typical_us`, one in a hundred much later."""
    return (
        (0.0, typical_us // 2),
        (0.5, typical_us),
        (0.9, typical_us * 3),
        (0.99, typical_us * 12),
        (1.0, typical_us * 40),
    )


class Purpose:
    """One row of the table."""

    def __init__(self, warm: Quantiles, cold: Quantiles | None = None, cold_uses: int = 0) -> None:
        self.warm, self.cold, self.cold_uses = warm, cold or warm, cold_uses


_MS = 1000
TABLE: dict[str, Purpose] = {
    # The network between brokers, and from and to clients.
    "net_connect": Purpose(_quick(600)),
    "net_request": Purpose(_quick(250), ((0.0, 800), (0.5, 2800), (1.0, 7000)), 400),
    "net_response": Purpose(_quick(250), ((0.0, 800), (0.5, 2800), (1.0, 7000)), 400),
    # ZooKeeper: on the way, in the server, back.
    "zk_connect": Purpose(_quick(1500)),
    "zk_reconnect": Purpose(((0.0, 0), (1.0, 999 * _MS))),
    "zk_request": Purpose(_quick(250), ((0.0, 500), (0.5, 2000), (0.9, 6000), (1.0, 25000)), 40),
    "zk_process": Purpose(_quick(150)),
    "zk_reply": Purpose(_quick(250), ((0.0, 300), (0.5, 1000), (0.9, 3000), (1.0, 12000)), 40),
    "zk_watch": Purpose(_quick(400), ((0.0, 500), (0.5, 1500), (1.0, 6000)), 5),
    # A server that is started again: until it listens, then until it has read its data and serves.
    "zk_start": Purpose(((0.0, 400 * _MS), (0.8, 700 * _MS), (1.0, 1200 * _MS))),
    "zk_load": Purpose(((0.0, 60 * _MS), (0.8, 150 * _MS), (1.0, 300 * _MS))),
    # Work at a broker.
    "create_log": Purpose(((0.0, 10 * _MS), (0.5, 100 * _MS), (0.9, 220 * _MS), (1.0, 300 * _MS))),
    "open_log": Purpose(((0.0, 1 * _MS), (0.5, 4 * _MS), (1.0, 40 * _MS))),
    "make_leader": Purpose(_quick(400), ((0.0, 500), (0.5, 8000), (1.0, 60 * _MS)), 2),
    "make_follower": Purpose(_quick(400), ((0.0, 500), (0.5, 8000), (1.0, 60 * _MS)), 2),
    "controller_event": Purpose(_quick(300), ((0.0, 500), (0.5, 4000), (1.0, 20 * _MS)), 30),
    # A boot, backwards from the registration (see `not_before`), and forwards after it.
    "boot.process": Purpose(((0.0, 500 * _MS), (1.0, 700 * _MS))),
    "boot.to_registration": Purpose(((0.0, 479 * _MS), (1.0, 1450 * _MS))),
    "boot.replica_manager_to_registration": Purpose(((0.0, 27 * _MS), (1.0, 253 * _MS))),
    "boot.list_ids_to_registration": Purpose(((0.0, 45 * _MS), (1.0, 136 * _MS))),
    "boot.replica_manager_startup": Purpose(((0.0, 1 * _MS), (1.0, 12 * _MS))),
    "boot.propagation": Purpose(((0.0, 0), (1.0, 15 * _MS))),
    "boot.logs": Purpose(((0.0, 20 * _MS), (1.0, 120 * _MS))),
    "boot.controller": Purpose(((0.0, 36 * _MS), (0.6, 70 * _MS), (1.0, 165 * _MS))),
    "boot.coordinator": Purpose(((0.0, 5 * _MS), (0.6, 15 * _MS), (1.0, 60 * _MS))),
    "boot.config": Purpose(((0.0, 8 * _MS), (0.6, 30 * _MS), (1.0, 90 * _MS))),
    "boot.started": Purpose(((0.0, 10 * _MS), (0.6, 40 * _MS), (1.0, 150 * _MS))),
    # An orderly stop: until the session is closed, until the process is gone.
    "shutdown.start": Purpose(((0.0, 3 * _MS), (0.6, 30 * _MS), (1.0, 150 * _MS))),
    "shutdown.announce": Purpose(((0.0, 2 * _MS), (0.6, 30 * _MS), (1.0, 200 * _MS))),
    "shutdown.parts": Purpose(((0.0, 760 * _MS), (0.8, 1000 * _MS), (1.0, 1600 * _MS))),
    "shutdown.exit": Purpose(((0.0, 400 * _MS), (1.0, 2000 * _MS))),
    # A fetcher thread's first steps: cold in a process's first few.
    "fetcher_start": Purpose(
        _quick(300), ((0.0, 2 * _MS), (0.5, 25 * _MS), (0.9, 120 * _MS), (1.0, 350 * _MS)), 2
    ),
    # Between two runs of a periodic task that make up for missed ones.
    "missed_run": Purpose(((0.0, 100), (0.5, 600), (0.9, 2500), (1.0, 10 * _MS))),
    # After a resume: how long the process is sluggish, when its threads first run (network threads
    # find their sockets ready; timers come later), what a step costs meanwhile.
    "resume_window": Purpose(((0.0, 10 * _MS), (1.0, 80 * _MS))),
    "resume_network": Purpose(((0.0, 50), (0.5, 400), (0.85, 3000), (1.0, 40 * _MS))),
    "resume_scheduler": Purpose(((0.0, 200), (0.5, 2500), (0.85, 12 * _MS), (1.0, 60 * _MS))),
    "resume_thread": Purpose(((0.0, 0), (0.5, 500), (0.85, 4000), (1.0, 40 * _MS))),
    "resume_tracker": Purpose(((0.0, 0), (0.6, 200), (0.9, 4000), (1.0, 40 * _MS))),
    "resume_step": Purpose(((0.0, 0), (0.5, 200), (0.9, 2500), (1.0, 10 * _MS))),
    # How fast an actor's code is, in thousandths of the table's times; drawn once for each.
    "speed": Purpose(((0.0, 600), (0.5, 1000), (1.0, 1500))),
    # Clients: how long one needs to get going, how late its driver hands a record over.
    "client_start": Purpose(((0.0, 20 * _MS), (0.8, 150 * _MS), (1.0, 220 * _MS))),
    "producer_handover": Purpose(((0.0, 0), (0.8, 2000), (1.0, 20 * _MS))),
    # How long a producer backs off, in thousandths of what is due (RD_KAFKA_RETRY_JITTER_PERCENT).
    "retry_jitter": Purpose(((0.0, 800), (1.0, 1200))),
}


class _Row:
    """A purpose's quantiles as equal buckets, for quick draws."""

    __slots__ = ("low", "span")

    def __init__(self, quantiles: Quantiles) -> None:
        edges = [_at(quantiles, i / _BUCKETS) for i in range(_BUCKETS + 1)]
        self.low = edges[:-1]
        self.span = [b - a for a, b in pairwise(edges)]

    def draw(self, bits: int) -> int:
        """A value for 64 random bits."""
        bucket = bits >> 56
        return self.low[bucket] + ((self.span[bucket] * (bits & 0xFFFFFFFF)) >> 32)


_row = lru_cache(maxsize=None)(_Row)
"""The rows of the table are the same in every world."""


def _at(quantiles: Sequence[tuple[float, int]], share: float) -> int:
    for (p0, v0), (p1, v1) in pairwise(quantiles):
        if share <= p1:
            return v0 + int((v1 - v0) * (share - p0) / (p1 - p0))
    return quantiles[-1][1]


class Latencies:
    """Draws from the table; counts uses, since a process runs cold code only at first."""

    def __init__(self, chance: Chance, table: dict[str, Purpose] | None = None) -> None:
        self._chance = chance
        table = TABLE if table is None else table
        self._rows = {n: (_row(p.warm), _row(p.cold), p.cold_uses) for n, p in table.items()}
        self._uses: dict[tuple[str, str], int] = {}
        self._speeds: dict[str, int] = {}

    def __call__(self, purpose: str, actor: str) -> int:
        """Microseconds that `purpose` takes `actor` this time."""
        warm, cold, cold_uses = self._rows[purpose]
        bits = self._chance.stream(purpose, actor).bits()
        if not cold_uses:
            return warm.draw(bits)
        uses = self._uses.get((purpose, actor), 0)
        if uses >= cold_uses:
            return warm.draw(bits)
        self._uses[(purpose, actor)] = uses + 1
        return cold.draw(bits) * self._speed_of(actor) // 1000

    def _speed_of(self, actor: str) -> int:
        speed = self._speeds.get(actor)
        if speed is None:
            speed = self._speeds[actor] = self("speed", actor)
        return speed

    def forget(self, actor: str) -> None:
        """A process was started anew: its code is cold again."""
        for purpose, who in [k for k in self._uses if k[1] == actor]:
            del self._uses[(purpose, who)]
        self._speeds.pop(actor, None)

    @property
    def purposes(self) -> list[str]:
        return list(self._rows)

    # -- emulator.kernel.scheduler.WakeUp ----------------------------------------------------------

    def thread(self, process: str, thread: str) -> int:
        """How long after a resume a thread first runs."""
        purpose = "resume_thread"
        if thread.startswith("data-plane-kafka-network-thread"):
            purpose = "resume_network"
        elif thread.startswith("kafka-scheduler"):
            purpose = "resume_scheduler"
        elif thread == "SessionTracker":
            purpose = "resume_tracker"
        return self(purpose, f"{process}/{thread}")

    def window(self, process: str) -> int:
        """How long a resumed process is sluggish."""
        return self("resume_window", process)

    def step(self, process: str, thread: str) -> int:
        """What one step of a thread costs while the process is sluggish."""
        return self("resume_step", f"{process}/{thread}")

    async def charge(self, name: str, task: Task) -> None:
        """Let a checkpoint of the core take its time."""
        kernel = task.process.kernel
        await kernel.sleep(self(name, task.process.name))
