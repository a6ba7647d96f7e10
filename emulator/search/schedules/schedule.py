"""A schedule as a file: the choices of a run wherever several things could happen next.

Owns the format (YAML, of which JSON is a subset) and its error messages. The file has everything
that a run depends on: the scenario's text, version and guards, the seed, the interval in which
choices are made, the choices that differ from the default order, and the faults. Plays nothing.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from emulator.runs.broken import Broken
from emulator.scenario.document import check_structure, read_text
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.units import BadDuration, duration_us
from emulator.scenario.version import VersionOptions, as_switches, switch_words
from emulator.scenario.written import flow

FORMAT = 2
SUFFIXES = (".yaml", ".yml", ".json")
_YAML_SWITCH = {True: "on", False: "off"}
"""A YAML reader turns on and off into booleans."""


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """At the `step`-th point with several options, the first `take` of `of` options were passed
    over, and are late from then on; 0 is the default and is not written. As labels: `what` was
    next, and `over` are those that became late."""

    step: int
    take: int
    of: int = 0
    what: str = ""
    over: str = ""


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fault applied before the `step`-th choice, as words (`pause 3`); it is undone after
    `lasts`."""

    step: int
    do: str
    lasts: str = msgspec.field(default="", name="for")


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a search tries: all differences from the default order."""

    choices: tuple[Choice, ...] = ()
    faults: tuple[Injection, ...] = ()

    @property
    def length(self) -> int:
        """The number of faults and choices, a measure of readability."""
        return len(self.faults) + len(self.choices)


class Schedule(Candidate, frozen=True, kw_only=True):
    """`begins`, `ends`: when choosing begins and when the run ends, since the cluster was up.
    `window`: how much later than due an item may happen. `steps`: the number of choices.
    `liveness`: judge liveness at the end, too. `events` and `trace`: the number of events and their
    digest."""

    schedule: int = 0
    name: str
    seed: int
    profile: str = ""
    guards: dict[str, str] = {}
    propagation: str = ""
    begins: str = "0s"
    window: str = "20ms"
    steps: int = 20
    ends: str = ""
    liveness: bool = False
    violation: Broken | None = None
    events: int = 0
    trace: str = ""
    scenario: dict[str, object]

    def plain(self) -> dict[str, object]:
        """The content of the file: of the violation only the invariant, the sentence and the
        hazard, because event numbers would change with the next version of the trace."""
        plain: dict[str, object] = msgspec.to_builtins(self)
        if self.violation is not None:
            broken = self.violation
            words = {"invariant": broken.invariant, "text": broken.text, "hazard": broken.hazard}
            plain["violation"] = {key: value for key, value in words.items() if value}
        return plain

    def loaded(self) -> LoadedScenario:
        """The scenario. Raises UserError."""
        chosen = VersionOptions(self.profile, as_switches(self.guards), self.propagation)
        return loads(yaml.safe_dump(self.scenario, sort_keys=False), self.name, chosen=chosen)


def schedule_of(
    scenario: LoadedScenario,
    seed: int,
    *,
    begins: str = "0s",
    window: str = "20ms",
    steps: int = 20,
    ends: str = "",
    liveness: bool = False,
) -> Schedule:
    """A schedule of this scenario without choices."""
    return Schedule(
        schedule=FORMAT,
        name=scenario.name,
        seed=seed,
        profile=scenario.profile,
        guards=switch_words(scenario.guards),
        propagation=scenario.propagation,
        begins=begins,
        window=window,
        steps=steps,
        ends=ends,
        liveness=liveness,
        scenario=yaml.safe_load(scenario.text),
    )


def microseconds(schedule: Schedule, key: str) -> int:
    """One of its durations. Raises UserError."""
    try:
        return duration_us(getattr(schedule, key))
    except BadDuration as error:
        raise UserError(f"{key} {getattr(schedule, key)}: {error}") from None


def written(schedule: Schedule) -> str:
    """The text of the file."""
    plain = schedule.plain()
    plain.pop("faults", None)
    plain.pop("choices", None)
    # The outcome comes last, before the scenario, which is long.
    keys = ("violation", "events", "trace", "scenario")
    last = {key: plain.pop(key) for key in keys if key in plain}
    lines = [
        "# The choices wherever more than one thing could happen next. To play: isr replay FILE"
    ]
    lines += [_block(key, value) for key, value in plain.items()]
    for key, entries in (("faults", schedule.faults), ("choices", schedule.choices)):
        lines.append(f"{key}:" if entries else f"{key}: []")
        lines += [f"  - {flow(msgspec.to_builtins(entry))}" for entry in entries]
    lines.append("")
    lines += [_block(key, value) for key, value in last.items()]
    return "\n".join(lines) + "\n"


def read_schedule(file: Path) -> Schedule:
    """Raises UserError."""
    text = read_text(file, str(file))
    try:
        check_structure(str(file), text)
        document: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # e.g. a date without a day
        raise UserError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict) or "schedule" not in document:
        raise UserError(f"{file}: not a schedule: no key `schedule` (isr explore writes one)")
    if isinstance(document.get("guards"), dict):
        guards = document["guards"].items()
        document["guards"] = {name: _YAML_SWITCH.get(on, on) for name, on in guards}
    try:
        schedule = msgspec.convert(document, type=Schedule)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: half a surrogate
        raise UserError(f"{file}: {error}") from None
    if schedule.schedule != FORMAT:
        raise UserError(f"{file}: schedule: format {schedule.schedule}, this is {FORMAT}")
    # Before labels were declared, timeouts were written as `lambda`.
    choices = tuple(
        msgspec.structs.replace(
            one,
            what=one.what.replace(": lambda", ": timeout"),
            over=one.over.replace(": lambda", ": timeout"),
        )
        for one in schedule.choices
    )
    return msgspec.structs.replace(schedule, choices=choices)


def _block(key: str, value: object) -> str:
    """One key; a value without nested values is on one line."""
    text: str = yaml.safe_dump(
        {key: value},
        sort_keys=False,
        default_flow_style=None if isinstance(value, dict | list) else False,
        width=100,
        allow_unicode=True,
    )
    return text.rstrip("\n")
