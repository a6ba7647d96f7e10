"""Versions and guards as a document: `python -m tools.documents.profiles > docs/profiles.md`.

Made from the registries alone, so that the document cannot say anything else than the code; a test
holds the one to the other. Knows no particular version and no particular guard.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

from emulator.kafka.profiles.base import Profile, profiles
from emulator.kafka.profiles.differences import Difference, differences, strategies
from emulator.kafka.profiles.guards.base import Guard, guards

_HEAD = """# Versions and guards

A *profile* is a Kafka version as data: default settings, guards, strategies, request versions. A
*guard* is a fix of Kafka's that a version has or lacks; the code that was fixed asks for it in one
place. `isr profiles` lists both, `isr profiles diff 2.4 2.6` says what differs.

`--profile NAME` plays a scenario on another version, `--guard NAME=off|on` takes a fix out or puts
it in, whatever the version, `--propagation zk|rpc` chooses who writes a changed ISR. A scenario
says the same with `profile`, `guards`, `propagation`; `cluster: {broker_profile: {3: "2.4"}}` gives
a broker another version, and `start: {broker: 3, profile: "2.6"}` upgrades one.

This file is made from `kafka/profiles/` by `python -m tools.documents.profiles`. Sections (§)
are those of the specification; so are H and B numbers of hazards.
"""


def markdown() -> str:
    """The whole document."""
    return "\n".join([_HEAD, *_versions(), *_matrix(), *_guards()])


def _versions() -> Iterator[str]:
    yield "## Versions\n"
    before: Profile | None = None
    for profile in profiles().values():
        yield f"### {profile.name} (as released in {profile.release})\n"
        yield f"{_about(profile)} Source: {profile.citation}.\n"
        if before is None:
            yield from _first(profile)
        else:
            yield from _changes(before, profile)
        before = profile


def _about(profile: Profile) -> str:
    """What the profile's file says at its head."""
    name = f"emulator.kafka.profiles.kafka_{profile.name.replace('.', '_')}"
    text = inspect.getdoc(sys.modules[name]) or ""
    return " ".join(text.split())


def _first(profile: Profile) -> Iterator[str]:
    yield "| | |\n|---|---|"
    for name, value in strategies(profile).items():
        yield f"| {name} | {value} |"
    for name, value in sorted(profile.defaults.items()):
        yield f"| `{name}` | {value} |"
    yield ""


def _changes(before: Profile, now: Profile) -> Iterator[str]:
    changed = [one for one in differences(before, now) if one.kind != "guard"]
    new = [guard for guard in guards().values() if guard in now.guards - before.guards]
    gone = [guard for guard in guards().values() if guard in before.guards - now.guards]
    if new:
        yield f"New guards: {', '.join(f'`{guard.name}`' for guard in new)}.\n"
    if gone:
        yield f"New code without the later fix: {', '.join(f'`{guard.name}`' for guard in gone)}.\n"
    if changed:
        yield f"| | {before.name} | {now.name} |\n|---|---|---|"
        yield from map(_row, changed)
        yield ""


def _row(one: Difference) -> str:
    name = f"`{one.name}`" if one.kind == "setting" else f"{one.kind} {one.name}"
    return f"| {name} | {one.a} | {one.b} |"


def _matrix() -> Iterator[str]:
    yield "## Which version has which guard\n"
    yield f"| guard | {' | '.join(profiles())} |"
    yield f"|---{'|:-:' * len(profiles())}|"
    for guard in guards().values():
        cells = ("●" if guard in profile.guards else "" for profile in profiles().values())
        yield f"| `{guard.name}` | {' | '.join(cells)} |"
    yield ""


def _guards() -> Iterator[str]:
    yield "## Guards\n"
    yield "| guard | Kafka | since | what it does | read in |\n|---|---|---|---|---|"
    for guard in guards().values():
        cells = (f"`{guard.name}`", guard.kafka, _since(guard), guard.does, guard.citation)
        yield f"| {' | '.join(cells)} |"
    yield ""


def _since(guard: Guard) -> str:
    unneeded = guard.unneeded_before
    return f"{guard.since} (nothing to mend before {unneeded})" if unneeded else guard.since


if __name__ == "__main__":
    print(markdown())
