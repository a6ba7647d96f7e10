"""The published model of asynchronous ISR updates in plain Python, as the reference for our state
counts.

A translation of AsyncIsr.tla by J. Gustafson (hachikuji/kafka-specification), with the same action
names. We add the missing constraint: limits for versions and offsets. It shares no rule with the
product: HW is derived, the pending ISR is a growing union, the leader accepts any newer update, and
nothing is ever rejected. Sets of brokers are bits; the leader is bit 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from emulator.search.async_isr.steps import Scope

NIL = -1
LEADER_BIT = 1
Message = tuple[int, int]
"""An ISR and a version."""


class Published(NamedTuple):
    """controllerState, leaderState, requests and updates."""

    controller_isr: int
    controller_version: int
    isr: int
    version: int
    pending_isr: int
    pending_version: int
    offsets: tuple[int, ...]
    requests: frozenset[Message]
    updates: frozenset[Message]

    @property
    def high_watermark(self) -> int:
        """HighWatermark."""
        potential = self.isr | self.pending_isr
        return min(o for n, o in enumerate(self.offsets) if potential >> n & 1)

    @property
    def is_valid(self) -> bool:
        """ValidHighWatermark."""
        hw = self.high_watermark
        return all(o >= hw for n, o in enumerate(self.offsets) if self.controller_isr >> n & 1)


def first(scope: Scope) -> Published:
    """Init."""
    everybody = (1 << scope.replicas) - 1
    offsets = (0,) * scope.replicas
    return Published(everybody, 0, everybody, 0, 0, NIL, offsets, frozenset(), frozenset())


def successors(state: Published, scope: Scope) -> Iterator[Published]:
    """Next, limited to the scope."""
    hw = state.high_watermark
    if state.controller_version < scope.versions:
        # The controller shrinks the ISR, or handles a request.
        for n in range(1, scope.replicas):
            if state.controller_isr >> n & 1:
                yield _controller_writes(state, state.controller_isr & ~(1 << n))
        for isr, version in state.requests:
            if version == state.controller_version:
                yield _controller_writes(state, isr)
    for n in range(1, scope.replicas):  # LeaderRequestShrinkIsr, LeaderRequestExpandIsr
        if not state.isr >> n & 1 and state.offsets[n] < hw:
            continue
        isr = state.isr ^ (1 << n)
        yield state._replace(
            pending_isr=state.pending_isr | isr,
            pending_version=state.version,
            requests=state.requests | {(isr, state.version)},
        )
    for isr, version in state.updates:  # The leader accepts any newer update.
        if version > state.version:
            yield state._replace(isr=isr, version=version, pending_isr=0, pending_version=NIL)
    for n, offset in enumerate(state.offsets):
        if offset < (scope.offsets if n == 0 else state.offsets[0]):
            offsets = (*state.offsets[:n], offset + 1, *state.offsets[n + 1 :])
            yield state._replace(offsets=offsets)


def _controller_writes(state: Published, isr: int) -> Published:
    version = state.controller_version + 1
    return state._replace(
        controller_isr=isr,
        controller_version=version,
        updates=state.updates | {(isr, version)},
    )


def states(scope: Scope, on_progress: Callable[[int], None] | None = None) -> set[Published]:
    """All reachable states; checks ValidHighWatermark in each."""
    begin = first(scope)
    known, queue = {begin}, deque([begin])
    while queue:
        for after in successors(queue.popleft(), scope):
            if after not in known:
                assert after.is_valid, f"the published model does not hold in {after}"
                known.add(after)
                queue.append(after)
                if on_progress is not None and not len(known) % 20_000:
                    on_progress(len(known))
    return known
