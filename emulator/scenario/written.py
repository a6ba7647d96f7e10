"""Writes a scenario file from a loaded one and the actions since: the same cluster, topics and
workload, other faults.

The written steps load as the same steps. Comments of the original file are lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import yaml

from emulator.scenario.actions.base import Action
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Settings, Step
from emulator.scenario.version import switch_words

COPIED = ("about", "profile", "cluster", "hosts", "topics", "workload", "kernel_late")
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
    """The file's text. `settings` are those of the command line; `head` becomes a comment at the
    beginning. The scenario runs until `until_us`, or until the workload is over."""
    read = yaml.safe_load(of.text)
    sections = {key: read[key] for key in COPIED if key in read}
    sections["about"] = of.about
    # The file has the version that was played, including options of the command line.
    sections["profile"] = of.profile
    if of.guards:
        sections["guards"] = switch_words(of.guards)
    if of.propagation:
        sections["propagation"] = of.propagation
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
    for step in steps:
        name, fields = step.action.name, parameters(step.action)
        lines.append(f"  - {flow({'at': _seconds(step.at_us), name: fields or None})}")
    lines.append(f"\nrun: {_seconds(max(until_us, LEAST_US, *ends))}\n")
    return "\n".join(lines)


def parameters(action: Action) -> dict[str, object]:
    """An action's fields in scenario format, without those at their default."""
    fields = msgspec.to_builtins(action)
    del fields["do"]
    return {key: plain(value) for key, value in fields.items()}


def plain(value: object) -> object:
    """Convert tuples to lists, for YAML."""
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def flow(value: object) -> str:
    """YAML on one line."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=_WIDE, allow_unicode=True
    )
    return text.strip()


def _seconds(us: int) -> str:
    """The exact number of seconds, in scenario format."""
    whole, fraction = divmod(us, 1_000_000)
    return f"{whole}.{fraction:06d}".rstrip("0").rstrip(".") + "s" if fraction else f"{whole}s"
