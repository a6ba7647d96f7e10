"""Strategies that choose the next step: a written schedule, chance, priorities.

A strategy is asked at each point where more than one thing can happen, and may do one of the faults
that it has first. What is passed over is late from then on: it comes behind all that was not, until
it happens (the kernel sees to it that this is soon). So one choice says that a message is slow, and
not one for each thing that overtakes it. Owns the account of it: what was chosen otherwise than it
would have come, what was done, how many options there were. What undoes a fault is no choice:
healing is not bounded. It must not know what the options are.
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
    """Choose nothing: keep the default order for `depth` steps."""

    def __init__(self, depth: int, injections: Sequence[Injection] = ()) -> None:
        self.depth, self.step = depth, 0
        self.needed = 0
        """So many steps: from then on all goes as it would by itself, and nothing is late."""
        self.choices: list[Choice] = []
        self.injected: list[Injection] = []
        self.offered: list[int] = []
        self.do: Callable[[Injection], None] | None = None
        """Injects a fault; set by the owner of the cluster."""
        self.on_step: OnStep | None = None
        self._left = sorted(injections, key=lambda injection: injection.step)
        self._late: list[Runnable] = []

    @property
    def over(self) -> bool:
        """See `Strategy`."""
        return self.step >= self.depth

    def choose(self, options: Sequence[Runnable]) -> int:
        """See `Strategy`."""
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
        """What was passed over and waits, in words: the longest first."""
        return tuple(label_of(one) for one in self._late)

    def _in_order(self, options: Sequence[Runnable]) -> Sequence[Runnable]:
        """As they would be next: what was passed over comes last."""
        self._late = [one for one in self._late if one in options]
        return [*(one for one in options if one not in self._late), *self._late]

    def pick(self, options: Sequence[Runnable]) -> int:
        """Which of them: the first is what would be next."""
        return 0


class WrittenOrder(DefaultOrder):
    """What a schedule says. `exactly`: it is an error where the run is not as it was; otherwise the
    option of the same words is passed_over, if there is one."""

    def __init__(self, depth: int, candidate: Candidate, *, exactly: bool) -> None:
        super().__init__(depth, candidate.faults)
        self._written = {choice.step: choice for choice in candidate.choices}
        self._exactly = exactly

    def pick(self, options: Sequence[Runnable]) -> int:
        """See `DefaultOrder`."""
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
    """Every option alike; some of the faults, at steps drawn beforehand."""

    def __init__(
        self, depth: int, stream: Stream, menu: Sequence[Injection], faults_max: int
    ) -> None:
        super().__init__(depth, drawn_injections(depth, stream, menu, faults_max))
        self._stream = stream

    def pick(self, options: Sequence[Runnable]) -> int:
        """See `DefaultOrder`."""
        return self._stream.below(len(options))


class PriorityOrder(DefaultOrder):
    """Probabilistic concurrency testing (Burckhardt et al. 2010): whatever runs has a drawn
    priority, the highest goes first; at `depth_of_bug` - 1 drawn steps who would be next becomes
    the last."""

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
        """See `DefaultOrder`."""
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
        """The first of the highest priority."""
        priorities = [self._priorities[thread] for thread in threads]
        return priorities.index(max(priorities))


def drawn_injections(
    depth: int, stream: Stream, menu: Sequence[Injection], faults_max: int
) -> list[Injection]:
    """Up to `faults_max` of the menu, each at some step."""
    if not menu:
        return []
    number = stream.between(1, faults_max) if faults_max else 0
    drawn = [menu[stream.below(len(menu))] for _ in range(number)]
    return [Injection(stream.below(depth), one.do, one.lasts) for one in drawn]
