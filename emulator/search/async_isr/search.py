"""All reachable states of one partition's asynchronous ISR updates, or random paths.

Owns the order of the search (breadth first, so the first counterexample is a shortest one), numbers
for recurring values, and the path to a state. A state is the leader's half, the controller's half,
and the sent messages, each set as bits of one number. Messages that can no longer have an effect
are dropped, which does not change the reachable states. Knows no rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from emulator.kernel.rng import Stream
from emulator.search.async_isr.steps import (
    Answer,
    Decision,
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
"""The numbers of the leader's and the controller's halves, and bit sets of the requests, responses
and LeaderAndIsr sent."""
Step = tuple[str, int, int]
"""The description, the number of the half after the step, and the bit of the message that it
sends."""
PROGRESS_EVERY = 5_000


class Seen(NamedTuple):
    """A state with the rules' own values."""

    leader: Leader
    cached: LeaderAndIsr
    requests: frozenset[Request]
    answers: frozenset[Answer]
    updates: frozenset[LeaderAndIsr]


class Result(msgspec.Struct, frozen=True):
    """The result of an exhaustive search. `counterexample`: the steps to the first state that
    violates ValidHighWatermark."""

    states: int
    transitions: int
    depth: int
    complete: bool
    counterexample: tuple[str, ...] = ()


class Numbers(Generic[T]):
    """Numbers values in order of first occurrence."""

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

    def only(self, bits: int, condition: Callable[[T], bool]) -> int:
        """The bits whose values satisfy the condition."""
        return sum(1 << n for n in _bits(bits) if condition(self.values[n]))


class Explorer:
    """The search in one scope of one version. Without `forgets` it keeps every message for ever, as
    the published model does."""

    def __init__(self, steps: Steps, *, forgets: bool = True) -> None:
        self.steps, self._forgets = steps, forgets
        self._leaders, self._caches = Numbers[Leader](), Numbers[LeaderAndIsr]()
        self._requests, self._answers = Numbers[Request](), Numbers[Answer]()
        self._updates = Numbers[LeaderAndIsr]()
        # There are far fewer pairs of halves and messages than states, so the rules are evaluated
        # once per pair.
        self._steps: dict[tuple[str, int, int], list[Step]] = {}
        self._valid: dict[tuple[int, int], bool] = {}
        self._live: dict[tuple[str, int, int], int] = {}
        self._known: dict[State, list[tuple[str, State]]] = {}
        leader, cached = steps.first
        self.first: State = (self._leaders.of(leader), self._caches.of(cached), 0, 0, 0)

    # -- one state ---------------------------------------------------------------------------------

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        """Every possible step and the state after it."""
        after: Callable[[State], State] = self._forget if self._forgets else lambda state: state
        leader, cached, requests, answers, updates = state
        rules, steps = self.steps, self._steps_by
        half, cache = self._leaders.values[leader], self._caches.values[cached]
        for words, now, sent in steps(("moves", leader, 0), rules.moves, half):
            yield words, after((now, cached, requests | sent, answers, updates))
        for words, now, sent in steps(("removals", cached, 0), rules.removals, cache):
            yield words, after((leader, now, requests, answers, updates | sent))
        for n in _bits(requests):
            request = self._requests.values[n]
            for words, now, sent in steps(("request", cached, n), rules.handled, cache, request):
                yield words, after((leader, now, requests, answers | sent, updates))
        for n in _bits(answers):
            answer = self._answers.values[n]
            for words, now, _ in steps(("answer", leader, n), rules.answered, half, answer):
                yield words, after((now, cached, requests, answers, updates))
        for n in _bits(updates):
            update = self._updates.values[n]
            for words, now, _ in steps(("update", leader, n), rules.becomes_leader, half, update):
                yield words, after((now, cached, requests, answers, updates))

    def _steps_by(
        self, key: tuple[str, int, int], rule: Callable[..., Iterable[Move | Decision]], *of: object
    ) -> list[Step]:
        """The steps of a rule for the values whose numbers the key has."""
        return _once(self._steps, key, lambda: [self._numbered(step) for step in rule(*of)])

    def _numbered(self, step: Move | Decision) -> Step:
        if isinstance(step, Move):
            return step.words, self._leaders.of(step.leader), self._requests.bit(step.request)
        sent = self._answers.bit(step.answer) | self._updates.bit(step.update)  # never both
        return step.words, self._caches.of(step.cached), sent

    def _forget(self, state: State) -> State:
        """The state without messages that can no longer have an effect."""
        leader, cached, requests, answers, updates = state
        steps, live = self.steps, self._live_by
        half, cache = self._leaders.values[leader], self._caches.values[cached]
        return (
            leader,
            cached,
            live(
                ("request", cached, requests),
                self._requests,
                lambda request: not steps.is_dead_request(cache, request),
            ),
            live(
                ("answer", leader, answers),
                self._answers,
                lambda answer: not steps.is_dead_answer(half, answer),
            ),
            live(
                ("update", leader, updates),
                self._updates,
                lambda update: update.leader_epoch > half.leader_epoch,
            ),
        )

    def _live_by(
        self, key: tuple[str, int, int], messages: Numbers[T], is_live: Callable[[T], bool]
    ) -> int:
        """Those of the key's messages that can still change the half."""
        bits = key[2]
        return bits and _once(self._live, key, lambda: messages.only(bits, is_live))

    def is_valid(self, state: State) -> bool:
        """Whether ValidHighWatermark holds."""
        leader, cached = self._leaders.values[state[0]], self._caches.values[state[1]]
        scope = self.steps.scope
        return _once(self._valid, state[:2], lambda: valid_high_watermark(leader, cached, scope))

    def seen(self, state: State) -> Seen:
        """The state with the rules' own values."""
        return Seen(
            self._leaders.values[state[0]],
            self._caches.values[state[1]],
            self._requests.in_bits(state[2]),
            self._answers.in_bits(state[3]),
            self._updates.in_bits(state[4]),
        )

    # -- all states --------------------------------------------------------------------------------

    def explore(
        self,
        on_state: Callable[[State], None] | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Result:
        """Search breadth first, to the end or to the first counterexample."""
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
                    path = list[str]()
                    while after in before:
                        after, words = before[after]
                        path.append(words)
                    return Result(len(depth_of), transitions, len(path), False, tuple(path[::-1]))
                queue.append(after)
                if on_progress is not None and not len(depth_of) % PROGRESS_EVERY:
                    on_progress(len(depth_of))
        return Result(len(depth_of), transitions, max(depth_of.values()), True)

    def random_path(self, stream: Stream, steps: int) -> tuple[str, ...] | None:
        """Take `steps` random steps. Return the path if it violated ValidHighWatermark, otherwise
        None."""
        state, path = self.first, list[str]()
        for _ in range(steps):
            if state not in self._known:
                self._known[state] = list(self.successors(state))
            options = self._known[state]
            if not options:
                return None
            words, state = options[stream.below(len(options))]
            path.append(words)
            if not self.is_valid(state):
                return tuple(path)
        return None


def _bits(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _once(known: dict[K, V], key: K, compute: Callable[[], V]) -> V:
    """Memoize `compute`."""
    try:
        return known[key]
    except KeyError:
        value = known[key] = compute()
        return value
