"""Strategies that choose the next step: a written schedule, random choice, priorities.

A strategy is called at each point with several options, and may first inject one of its faults.
Items that it passes over are late from then on: they come after all others until they happen (the
kernel limits the delay). So one choice makes a message slow; there is not one choice for each item
that overtakes it. Owns the record: choices that differ from the default order, injected faults,
numbers of options. Undoing a fault is no choice, and is not limited. Must not know what the options
are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.kernel.choices import LOOK_AGAIN
from emulator.kernel.rng import Stream
from emulator.kernel.scheduler import Runnable
from emulator.scenario.errors import UserError
from emulator.search.schedules.labels import label_of
from emulator.search.schedules.schedule import Candidate, Choice, Injection

OnStep = Callable[[Sequence[Runnable]], None]


class DefaultOrder:
    """Makes no choice: keeps the default order for `depth` steps."""

    def __init__(self, depth: int, injections: Sequence[Injection] = ()) -> None:
        self.depth, self.step = depth, 0
        self.needed = 0
        """The number of steps after which everything is in default order and nothing is late."""
        self.choices: list[Choice] = []
        self.injected: list[Injection] = []
        self.offered: list[int] = []
        self.do: Callable[[Injection], None] | None = None
        self.on_step: OnStep | None = None
        self._left = sorted(injections, key=lambda injection: injection.step)
        self._late: list[Runnable] = []

    @property
    def over(self) -> bool:
        return self.step >= self.depth

    def choose(self, options: Sequence[Runnable]) -> int:
        if self._left and self._left[0].step <= self.step:
            injection = self._left.pop(0)
            self.injected.append(Injection(self.step, injection.do, injection.lasts))
            self.needed = self.step + 1
            assert self.do is not None
            self.do(injection)
            return LOOK_AGAIN
        order = self._in_order(options)
        if self.on_step is not None:
            self.on_step(order)
        passed_over = self.pick(order)
        if passed_over:
            passed, what = order[:passed_over], label_of(order[passed_over])
            over = [label_of(one) for one in passed if one not in self._late]
            self.choices.append(Choice(self.step, passed_over, len(order), what, "; ".join(over)))
            self._late = [*(one for one in self._late if one not in passed), *passed]
        if self._late:
            self._late = [one for one in self._late if one is not order[passed_over]]
            self.needed = self.step + 1
        self.offered.append(len(order))
        self.step += 1
        return options.index(order[passed_over])

    @property
    def late(self) -> tuple[str, ...]:
        """The labels of deferred items, the oldest first."""
        return tuple(label_of(one) for one in self._late)

    def _in_order(self, options: Sequence[Runnable]) -> Sequence[Runnable]:
        """The options in default order; deferred items come last."""
        self._late = [one for one in self._late if one in options]
        return [*(one for one in options if one not in self._late), *self._late]

    def pick(self, options: Sequence[Runnable]) -> int:
        """The index of the chosen option; 0 is the default."""
        return 0


class WrittenOrder(DefaultOrder):
    """The choices of a schedule. `exactly`: a run that differs is an error; otherwise the option
    with the same label is passed over, if there is one."""

    def __init__(self, depth: int, candidate: Candidate, *, exactly: bool) -> None:
        super().__init__(depth, candidate.faults)
        self._written = {choice.step: choice for choice in candidate.choices}
        self._exactly = exactly

    def pick(self, options: Sequence[Runnable]) -> int:
        choice = self._written.get(self.step)
        if choice is None:
            return 0
        if not self._exactly:
            labels = [label_of(option) for option in options]
            return labels.index(choice.what) if choice.what in labels else 0
        label = label_of(options[choice.take]) if choice.take < len(options) else "nothing"
        if label != choice.what and choice.what:
            raise UserError(
                f"step {choice.step}: the schedule has {choice.what!r}, here it is {label!r}: "
                "it was made with another version of this program"
            )
        if choice.take >= len(options):
            raise UserError(
                f"step {choice.step}: there are {len(options)} options, not {choice.take}"
            )
        return choice.take


class RandomOrder(DefaultOrder):
    """Chooses uniformly; injects some of the faults at random steps."""

    def __init__(
        self, depth: int, stream: Stream, menu: Sequence[Injection], faults_max: int
    ) -> None:
        super().__init__(depth, drawn_injections(depth, stream, menu, faults_max))
        self._stream = stream

    def pick(self, options: Sequence[Runnable]) -> int:
        return self._stream.below(len(options))


class PriorityOrder(DefaultOrder):
    """Probabilistic concurrency testing (Burckhardt et al. 2010): each actor has a random priority,
    and the highest goes first. At `depth_of_bug` - 1 random steps the actor that would be next gets
    the lowest priority."""

    def __init__(
        self,
        depth: int,
        stream: Stream,
        menu: Sequence[Injection],
        faults_max: int,
        depth_of_bug: int = 3,
    ) -> None:
        super().__init__(depth, drawn_injections(depth, stream, menu, faults_max))
        self._stream = stream
        self._priorities: dict[tuple[str, str], int] = {}
        self._lowest = 0
        self._changes = {stream.below(depth) for _ in range(depth_of_bug - 1)}

    def pick(self, options: Sequence[Runnable]) -> int:
        threads = [(option.process.name, option.thread) for option in options]
        for thread in threads:
            if thread not in self._priorities:
                self._priorities[thread] = self._stream.bits()
        if self.step in self._changes:
            self._changes.discard(self.step)
            self._lowest -= 1
            self._priorities[threads[self._highest(threads)]] = self._lowest
        return self._highest(threads)

    def _highest(self, threads: Sequence[tuple[str, str]]) -> int:
        """The index of the first option with the highest priority."""
        priorities = [self._priorities[thread] for thread in threads]
        return priorities.index(max(priorities))


def drawn_injections(
    depth: int, stream: Stream, menu: Sequence[Injection], faults_max: int
) -> list[Injection]:
    """Up to `faults_max` faults of the menu, at random steps."""
    if not menu:
        return []
    number = stream.between(1, faults_max) if faults_max else 0
    drawn = [menu[stream.below(len(menu))] for _ in range(number)]
    return [Injection(stream.below(depth), one.do, one.lasts) for one in drawn]
