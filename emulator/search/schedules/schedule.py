"""A schedule as a file: what was chosen in a run wherever more than one thing could happen next.

Owns the format (YAML; JSON is YAML) and what is said of a file that is none. It holds all that a
run depends on: the scenario as it was read, version and guards, the seed, from when to when it was
chosen, the choices that differ from what happens by itself, and the faults. It plays nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from emulator.runs.broken import Broken
from emulator.scenario.document import read_text
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.units import BadDuration, duration_us
from emulator.scenario.version import SWITCH, Chosen

FORMAT = 2
SUFFIXES = (".yaml", ".yml", ".json")
_STATE = {on: word for word, on in SWITCH.items()}


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """At the `step`-th point where more than one thing could happen, the first `take` of `of` were
    passed over, and are late from then on; with 0 it goes as it would by itself, and nothing is
    written. In words: `what` was next, and `over` what was not late before."""

    step: int
    take: int
    of: int = 0
    what: str = ""
    over: str = ""


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Before the `step`-th choice this was done, written as it is typed (`pause 3`); it is undone
    after `lasts`."""

    step: int
    do: str
    lasts: str = msgspec.field(default="", name="for")


class Schedule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """`begins`, `ends`: of what is chosen and of the run, since the cluster is up. `window`: how
    much later than it would something may happen. `steps`: at so many points it is chosen.
    `liveness`: what must have come about at the end is asked too. `events` and `trace`: how many
    happened, and their digest."""

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
    faults: tuple[Injection, ...] = ()
    choices: tuple[Choice, ...] = ()
    violation: Broken | None = None
    events: int = 0
    trace: str = ""
    scenario: dict[str, Any]

    @property
    def length(self) -> int:
        """What somebody has to read: faults and choices."""
        return len(self.faults) + len(self.choices)

    def plain(self) -> dict[str, Any]:
        """As a file has it: of the violation the invariant, the sentence and the hazard. Numbers of
        events would not outlive the next change of the trace."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        if violation := plain.get("violation"):
            keys = [key for key in ("invariant", "text", "hazard") if violation[key]]
            plain["violation"] = {key: violation[key] for key in keys}
        return plain

    def loaded(self) -> LoadedScenario:
        """The scenario, ready to be played. Raises UserError."""
        switches = tuple(f"{name}={state}" for name, state in self.guards.items())
        chosen = Chosen(self.profile, switches, self.propagation)
        return loads(yaml.safe_dump(self.scenario, sort_keys=False), self.name, chosen=chosen)


def schedule_of(scenario: LoadedScenario, seed: int, **more: Any) -> Schedule:
    """A schedule of this scenario in which nothing is chosen yet."""
    return Schedule(
        schedule=FORMAT,
        name=scenario.name,
        seed=seed,
        profile=scenario.profile,
        guards={name: _STATE[on] for name, on in scenario.guards.items()},
        propagation=scenario.propagation,
        scenario=yaml.safe_load(scenario.text),
        **more,
    )


def microseconds(schedule: Schedule, key: str) -> int:
    """One of its durations. Raises UserError."""
    try:
        return duration_us(getattr(schedule, key))
    except BadDuration as error:
        raise UserError(f"{key} {getattr(schedule, key)}: {error}") from None


def written(schedule: Schedule) -> str:
    """The file's text."""
    plain = schedule.plain()
    scenario, entries = plain.pop("scenario"), {}
    for key in ("faults", "choices"):
        entries[key] = plain.pop(key, [])
    violation = plain.pop("violation", None)
    seen = {key: plain.pop(key) for key in ("events", "trace") if key in plain}
    lines = ["# What was chosen wherever more than one thing could happen next: isr replay FILE"]
    lines += [_block({key: value}) for key, value in plain.items()]
    for key, listed in entries.items():
        lines.append(f"{key}:" if listed else f"{key}: []")
        lines += [f"  - {_flow(entry)}" for entry in listed]
    lines.append("")
    if violation is not None:
        lines.append(_block({"violation": violation}))
    lines += [_block({key: value}) for key, value in seen.items()]
    lines.append(_block({"scenario": scenario}))
    return "\n".join(lines) + "\n"


def read_schedule(file: Path) -> Schedule:
    """Raises UserError."""
    text = read_text(file, str(file))
    try:
        found: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{file}: is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or "schedule" not in found:
        raise UserError(f"{file}: is no schedule: it has no key schedule (isr explore writes them)")
    if isinstance(found.get("guards"), dict):
        found["guards"] = {n: _STATE.get(on, on) for n, on in found["guards"].items()}
    try:
        schedule = msgspec.convert(found, type=Schedule)
    except msgspec.ValidationError as error:
        raise UserError(f"{file}: {error}") from None
    if schedule.schedule != FORMAT:
        raise UserError(f"{file}: schedule: format {schedule.schedule}, this is {FORMAT}")
    # Timeouts were written as the `lambda` that they were before labels were declared.
    choices = tuple(
        msgspec.structs.replace(
            one,
            what=one.what.replace(": lambda", ": timeout"),
            over=one.over.replace(": lambda", ": timeout"),
        )
        for one in schedule.choices
    )
    return msgspec.structs.replace(schedule, choices=choices)


def _block(value: dict[str, Any]) -> str:
    """One key; what has nothing nested in it is in one line."""
    simple = not any(isinstance(one, dict | list) for one in value.values())
    text: str = yaml.safe_dump(
        value,
        sort_keys=False,
        default_flow_style=False if simple else None,
        width=100,
        allow_unicode=True,
    )
    return text.rstrip("\n")


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(
        value, sort_keys=False, default_flow_style=True, width=1 << 20, allow_unicode=True
    )
    return text.strip()
