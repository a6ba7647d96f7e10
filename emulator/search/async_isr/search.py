"""Every state that one partition's asynchronous ISR updates can come to, or random ways through
them.

Owns the order of the search (breadth first: the first counterexample is a shortest one), numbers
for what is met again and again, and the way back to a state. A state is the leader's half, the
controller's, and what was sent, each set of messages as bits of one number. What nobody obeys any
more is forgotten: that changes nothing that can still happen. Knows no rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from emulator.kernel.rng import Stream
from emulator.search.async_isr.steps import (
    Answer,
    Leader,
    Move,
    Request,
    Steps,
    valid_high_watermark,
)
from zk.client.codec import LeaderAndIsr

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)
V = TypeVar("V")

State = tuple[int, int, int, int, int]
"""Numbers of the leader's half and of the controller's; bits of the requests, of the answers and of
the LeaderAndIsr that were sent."""
Step = tuple[str, int, int]
"""Its words, the number of the half after it, and the bit of what it sends."""
TELL_EVERY = 5_000


class Seen(NamedTuple):
    """A state in the values of the rules."""

    leader: Leader
    cached: LeaderAndIsr
    requests: frozenset[Request]
    answers: frozenset[Answer]
    told: frozenset[LeaderAndIsr]


class Result(msgspec.Struct, frozen=True):
    """What an exhaustive search came to. `counterexample`: the steps to a first state that breaks
    ValidHighWatermark."""

    states: int
    transitions: int
    depth: int
    complete: bool
    counterexample: tuple[str, ...] = ()


class Numbers(Generic[T]):
    """A number for each value, in the order in which they came."""

    def __init__(self) -> None:
        self._of: dict[T, int] = {}
        self.values: list[T] = []

    def of(self, value: T) -> int:
        number = self._of.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def bit(self, value: T | None) -> int:
        return 0 if value is None else 1 << self.of(value)

    def in_bits(self, bits: int) -> frozenset[T]:
        return frozenset(self.values[n] for n in _bits(bits))

    def kept(self, bits: int, wanted: Callable[[T], bool]) -> int:
        """The bits of those that are wanted."""
        return sum(1 << n for n in _bits(bits) if wanted(self.values[n]))


class Explorer:
    """One scope of one version. `forgets`: False keeps every message for ever, as the published
    model does."""

    def __init__(self, steps: Steps, *, forgets: bool = True) -> None:
        self.steps, self._forgets = steps, forgets
        self._leaders, self._caches = Numbers[Leader](), Numbers[LeaderAndIsr]()
        self._requests, self._answers = Numbers[Request](), Numbers[Answer]()
        self._told = Numbers[LeaderAndIsr]()
        self._moves: dict[int, list[Step]] = {}
        self._removals: dict[int, list[Step]] = {}
        self._handled: dict[tuple[int, int], list[Step]] = {}
        self._takes: dict[tuple[int, int], list[Step]] = {}
        self._becomes: dict[tuple[int, int], list[Step]] = {}
        self._valid: dict[tuple[int, int], bool] = {}
        self._kept: dict[tuple[str, int, int], int] = {}
        self._known: dict[State, list[tuple[str, State]]] = {}
        leader, cached = steps.first
        self.first: State = (self._leaders.of(leader), self._caches.of(cached), 0, 0, 0)

    # -- one state ---------------------------------------------------------------------------------

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step from here, and where it leads."""
        after = self._forget if self._forgets else _as_it_is
        leader, cached, requests, answers, told = state
        for words, now, sent in self._moves_of(leader):
            yield words, after((now, cached, requests | sent, answers, told))
        for words, now, sent in self._removals_of(cached):
            yield words, after((leader, now, requests, answers, told | sent))
        for number in _bits(requests):
            for words, now, sent in self._handled_by(cached, number):
                yield words, after((leader, now, requests, answers | sent, told))
        for number in _bits(answers):
            for words, now, _ in self._taken_by(leader, number):
                yield words, after((now, cached, requests, answers, told))
        for number in _bits(told):
            for words, now, _ in self._becoming(leader, number):
                yield words, after((now, cached, requests, answers, told))

    def _moves_of(self, leader: int) -> list[Step]:
        def ask() -> list[Step]:
            return [self._step(move) for move in self.steps.moves(self._leaders.values[leader])]

        return _once(self._moves, leader, ask)

    def _step(self, move: Move) -> Step:
        return move.words, self._leaders.of(move.leader), self._requests.bit(move.request)

    def _removals_of(self, cached: int) -> list[Step]:
        def ask() -> list[Step]:
            return [
                (d.words, self._caches.of(d.cached), self._told.bit(d.told))
                for d in self.steps.removals(self._caches.values[cached])
            ]

        return _once(self._removals, cached, ask)

    def _handled_by(self, cached: int, request: int) -> list[Step]:
        def ask() -> list[Step]:
            asked = self._requests.values[request]
            d = self.steps.handled(self._caches.values[cached], asked)
            if d is None:
                return []
            return [(d.words, self._caches.of(d.cached), self._answers.bit(d.answer))]

        return _once(self._handled, (cached, request), ask)

    def _taken_by(self, leader: int, answer: int) -> list[Step]:
        def ask() -> list[Step]:
            before, given = self._leaders.values[leader], self._answers.values[answer]
            return [self._step(move) for move in self.steps.answered(before, given)]

        return _once(self._takes, (leader, answer), ask)

    def _becoming(self, leader: int, told: int) -> list[Step]:
        def ask() -> list[Step]:
            before, said = self._leaders.values[leader], self._told.values[told]
            return [self._step(move) for move in self.steps.becomes_leader(before, said)]

        return _once(self._becomes, (leader, told), ask)

    def _forget(self, state: State) -> State:
        """Without the messages that nobody obeys any more."""
        leader, cached, requests, answers, told = state
        kept, steps = self._kept, self.steps

        def live_requests() -> int:
            now = self._caches.values[cached]
            return self._requests.kept(requests, lambda r: not steps.is_dead_request(now, r))

        def live_answers() -> int:
            now = self._leaders.values[leader]
            return self._answers.kept(answers, lambda a: not steps.is_dead_answer(now, a))

        def live_told() -> int:
            now = self._leaders.values[leader]
            return self._told.kept(told, lambda t: t.leader_epoch > now.leader_epoch)

        return (
            leader,
            cached,
            requests and _once(kept, ("request", cached, requests), live_requests),
            answers and _once(kept, ("answer", leader, answers), live_answers),
            told and _once(kept, ("told", leader, told), live_told),
        )

    def is_valid(self, state: State) -> bool:
        """Whether ValidHighWatermark holds."""

        def ask() -> bool:
            leader, cached = self._leaders.values[state[0]], self._caches.values[state[1]]
            return valid_high_watermark(leader, cached, self.steps.scope)

        return _once(self._valid, state[:2], ask)

    def seen(self, state: State) -> Seen:
        """The state in words of the rules."""
        return Seen(
            self._leaders.values[state[0]],
            self._caches.values[state[1]],
            self._requests.in_bits(state[2]),
            self._answers.in_bits(state[3]),
            self._told.in_bits(state[4]),
        )

    # -- all of them -------------------------------------------------------------------------------

    def explore(
        self,
        on_state: Callable[[State], None] | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Result:
        """Breadth first, to the end or to the first counterexample."""
        depth_of, before = {self.first: 0}, dict[State, tuple[State, str]]()
        queue, transitions = deque([self.first]), 0
        while queue:
            state = queue.popleft()
            if on_state is not None:
                on_state(state)
            for words, after in self.successors(state):
                transitions += 1
                if after in depth_of:
                    continue
                depth_of[after] = depth_of[state] + 1
                before[after] = state, words
                if not self.is_valid(after):
                    way = _way_to(after, before)
                    return Result(len(depth_of), transitions, len(way), False, way)
                queue.append(after)
                if on_progress is not None and not len(depth_of) % TELL_EVERY:
                    on_progress(len(depth_of))
        return Result(len(depth_of), transitions, max(depth_of.values()), True)

    def random_way(self, stream: Stream, steps: int) -> tuple[str, ...] | None:
        """`steps` steps at random; the way, if it broke ValidHighWatermark, else None."""
        state, way = self.first, list[str]()
        for _ in range(steps):
            options = self._options(state)
            if not options:
                return None
            words, state = options[stream.below(len(options))]
            way.append(words)
            if not self.is_valid(state):
                return tuple(way)
        return None

    def _options(self, state: State) -> list[tuple[str, State]]:
        return _once(self._known, state, lambda: list(self.successors(state)))


def _as_it_is(state: State) -> State:
    return state


def _bits(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _once(known: dict[K, V], key: K, ask: Callable[[], V]) -> V:
    """What was asked before is not asked again."""
    try:
        return known[key]
    except KeyError:
        found = known[key] = ask()
        return found


def _way_to(state: State, before: dict[State, tuple[State, str]]) -> tuple[str, ...]:
    way: list[str] = []
    while state in before:
        state, words = before[state]
        way.append(words)
    return tuple(way[::-1])
