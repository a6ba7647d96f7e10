"""A scenario file from one that was read and what was done since: the same cluster, topics and
workload, other faults.

Owns how a step is written so that it is read again as it was. Comments of the file that was read
are not kept. It must not know who has done what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from emulator.scenario.actions.base import Stimulus
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Settings, Step

KEPT = ("about", "profile", "cluster", "topics", "workload", "kernel_late")
LEAST_US = 1_000_000
_WIDE = 1 << 20


def write_scenario(
    of: LoadedScenario,
    steps: Sequence[Step],
    until_us: int,
    *,
    settings: Settings,
    head: Sequence[str] = (),
) -> str:
    """The file's text. `settings` are those of the command line; `head` is said in comments at its
    beginning. It runs until `until_us`, or until the workload is over."""
    read = yaml.safe_load(of.text)
    sections = {key: read[key] for key in KEPT if key in read}
    sections["about"] = of.about
    sections |= _version(of)
    if settings:
        cluster = sections.get("cluster") or {}
        config = {**(cluster.get("config") or {}), **settings}
        sections["cluster"] = {**cluster, "config": config}
    ends = (step.at_us for step in of.steps if not step.fault)
    lines = [f"# {line}" for line in head]
    lines.append(
        yaml.safe_dump(
            sections, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
        )
    )
    lines.append("faults:" if steps else "faults: []")
    lines.extend(f"  - {_flow(_entry(step))}" for step in steps)
    lines.append(f"\nrun: {_seconds(max(until_us, LEAST_US, *ends))}\n")
    return "\n".join(lines)


def _version(of: LoadedScenario) -> dict[str, Any]:
    """As it was played: options of the command line are in it."""
    found: dict[str, Any] = {"profile": of.profile}
    if of.guards:
        found["guards"] = {name: "on" if on else "off" for name, on in of.guards.items()}
    if of.propagation:
        found["propagation"] = of.propagation
    return found


def _entry(step: Step) -> dict[str, Any]:
    return {"at": _seconds(step.at_us), step.stimulus.name: parameters(step.stimulus) or None}


def parameters(stimulus: Stimulus) -> dict[str, Any]:
    """A stimulus' fields as a scenario has them; those that have their default are left out."""
    fields: dict[str, Any] = msgspec.to_builtins(stimulus)
    fields.pop("do")
    return {key: _plain(value) for key, value in fields.items()}


def _plain(value: Any) -> Any:
    """Tuples are lists to YAML."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _flow(value: Any) -> str:
    """In one line."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=_WIDE, allow_unicode=True
    )
    return text.strip()


def _seconds(us: int) -> str:
    """Exactly, as scenarios have it."""
    whole, rest = divmod(us, 1_000_000)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".") + "s" if rest else f"{whole}s"
