"""What a version line is, and the registry of those that there are.

A profile is data. A *guard* is a named fix that the version has; it is read in one place, where
Kafka's own change was made. A new line is a new file in this package with a `PROFILE`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import MappingProxyType

import msgspec


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One Kafka version line."""

    name: str
    release: str
    defaults: MappingProxyType[str, str]
    guards: frozenset[str] = frozenset()
    citation: str = ""


@cache
def profiles() -> dict[str, Profile]:
    """All version lines by name, oldest first."""
    package = importlib.import_module("emulator.profiles")
    found = [
        importlib.import_module(f"emulator.profiles.{module.name}").PROFILE
        for module in pkgutil.iter_modules(package.__path__)
        if module.name.startswith("kafka_")
    ]
    return {p.name: p for p in sorted(found, key=lambda p: [int(x) for x in p.name.split(".")])}
