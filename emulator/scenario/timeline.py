"""The time line: entries of `workload` and `faults` become steps.

An entry is one action of the registry with its times: `at` (or `from`) is its beginning; `for` its
duration, or `until` its end; `every` with `times` repeats it. The action itself defines how it ends
(`ending`). This module knows no action by name.
"""

from __future__ import annotations

from emulator.scenario.actions.base import Action, actions
from emulator.scenario.cluster import Cluster
from emulator.scenario.document import Item
from emulator.scenario.errors import instead_of
from emulator.scenario.parameters import read_action
from emulator.scenario.schema import Step
from emulator.scenario.units import show_us

SETTLED_US = 2_000_000
"""The default start of a workload: by then topics are created and their leaders known."""

REPEATS_MAX = 10_000
_TIMES = ("at", "from", "for", "until", "every", "times")


class TimeLine:
    """Collects the steps of one run that ends at `end_us`."""

    def __init__(self, cluster: Cluster, end_us: int) -> None:
        self.cluster, self.end_us = cluster, end_us
        self.steps: list[Step] = []

    def read_workload(self, item: Item | None) -> None:
        """The section `workload`: what clients do."""
        for entry in item.items() if item else ():
            times, action, value = self._action(entry)
            self._place(entry, times, action, value, fault=False)

    def read_faults(self, item: Item | None) -> None:
        """The section `faults`; a test may remove these steps."""
        for entry in item.items() if item else ():
            times, action, value = self._action(entry)
            if "at" not in times and "from" not in times:
                entry.fail("at is missing: when it happens, such as at: 5s")
            self._place(entry, times, action, value, fault=True)

    def in_order(self) -> tuple[Step, ...]:
        """All steps by time; simultaneous ones keep their order in the file."""
        return tuple(sorted(self.steps, key=lambda step: step.at_us))

    def _action(self, entry: Item) -> tuple[dict[str, Item], Action, Item]:
        keys = entry.mapping()
        times = {key: item for key, item in keys.items() if key in _TIMES}
        others = {key: item for key, item in keys.items() if key not in _TIMES}
        names = [key for key in others if key in actions()]
        if len(names) != 1:
            _blame_names(entry, others, names)
        return times, read_action(names[0], others, self.cluster), others[names[0]]

    def _place(
        self, entry: Item, times: dict[str, Item], action: Action, value: Item, *, fault: bool
    ) -> None:
        """Add the steps of one entry: beginning and end, for each repetition."""
        for first, second in (("at", "from"), ("for", "until")):
            if first in times and second in times:
                times[second].fail(f"{first} or {second}, not both")
        began = times.get("at") or times.get("from")
        start = began.duration() if began else SETTLED_US
        end = times.get("for") or times.get("until")
        for at_us in _repeats(times, start):
            self._step(began or entry, at_us, action, fault=fault)
            if end is None:
                continue
            end_us = end.duration() + (at_us if "for" in times else 0)
            if end_us <= at_us:
                end.fail(f"ends at {show_us(end_us)}, but it begins at {show_us(at_us)}")
            self._step(end, end_us, _ending(action, value), fault=fault)

    def _step(self, item: Item, at_us: int, action: Action, *, fault: bool) -> None:
        if at_us > self.end_us:
            item.fail(
                f"{action.name} at {show_us(at_us)} is beyond the run: {show_us(self.end_us)}"
            )
        self.steps.append(Step(at_us, action, fault))


def _blame_names(entry: Item, others: dict[str, Item], names: list[str]) -> None:
    if names:
        entry.fail(f"one thing at a time, not {' and '.join(names)}")
    if not others:
        entry.fail(f"what happens? {instead_of('', actions())}")
    wrong, item = next(iter(others.items()))
    item.fail(f"there is no {wrong}; {instead_of(wrong, actions())}")


def _repeats(times: dict[str, Item], start: int) -> list[int]:
    """The times at which it begins."""
    every, count = times.get("every"), times.get("times")
    if every is None and count is None:
        return [start]
    if every is None or count is None:
        (count or every or next(iter(times.values()))).fail("every and times go together")
    if "until" in times:
        times["until"].fail("what is repeated lasts for a time: for, not until")
    number, period = count.whole(least=1), every.duration()
    if number > REPEATS_MAX or period < 1:
        count.fail(f"at most {REPEATS_MAX} times, and every more than 0")
    if "for" in times and times["for"].duration() >= period:
        times["for"].fail(f"lasts longer than every {show_us(period)}")
    return [start + period * i for i in range(number)]


def _ending(action: Action, value: Item) -> Action:
    ending = action.ending()
    if ending is None:
        value.fail(f"nothing undoes {action.name}: it takes neither for nor until")
    return ending
