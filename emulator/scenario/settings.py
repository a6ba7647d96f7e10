"""Kafka settings in a scenario, checked against the existing names and values.

Owns the check and the place in its error messages. Names, types and bounds come from
`model.config`, `broker.topic_rules` and the profile. Nothing here knows what a setting does.
"""

from __future__ import annotations

from collections.abc import Mapping

from emulator.kafka.broker.topic_rules import check_topic_settings
from emulator.kafka.model.config import (
    DERIVED,
    DYNAMIC_BROKER_PROPERTIES,
    TOPIC_PROPERTIES,
    BadSetting,
    KafkaConfig,
    property_names,
)
from emulator.kafka.model.errors import KafkaError
from emulator.kafka.profiles.base import Profile
from emulator.scenario.document import Item
from emulator.scenario.errors import UserError, instead_of
from emulator.scenario.schema import Settings


def broker_settings(item: Item | None) -> Settings:
    """A mapping of broker settings with known names."""
    return _named(item, frozenset(property_names()) | DYNAMIC_BROKER_PROPERTIES)


def dynamic_settings(item: Item) -> Settings:
    """Broker settings that can be changed while the broker runs."""
    return _named(item, DYNAMIC_BROKER_PROPERTIES)


def topic_settings(item: Item | None) -> Settings:
    """A mapping of topic settings with known names and valid values."""
    settings = _named(item, TOPIC_PROPERTIES)
    for name, value in item.mapping().items() if item is not None else ():
        try:
            check_topic_settings({name: settings[name]})
        except KafkaError as failed:
            value.fail(failed.message)
    return settings


def _named(item: Item | None, known: frozenset[str]) -> Settings:
    if item is None:
        return {}
    return {key: value.text() for key, value in item.mapping(known).items()}


def overrides(pairs: tuple[str, ...]) -> Settings:
    """The settings of `--set KEY=VALUE`. Raises UserError for a malformed or unknown one."""
    settings: Settings = {}
    known = property_names()
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not value.strip():
            raise UserError(f"--set {pair}: write KEY=VALUE")
        if key not in known:
            raise UserError(f"--set {pair}: there is no setting {key}; {instead_of(key, known)}")
        settings[key.strip()] = value.strip()
    return settings


def check_values(
    profile: Profile, settings: Mapping[str, str], where: Item, from_options: Mapping[str, str]
) -> None:
    """Check that every value is valid, and that the settings are consistent."""
    only_dynamic = DYNAMIC_BROKER_PROPERTIES - set(property_names())
    for key in settings:
        if key not in {*profile.defaults, *DERIVED, *only_dynamic}:
            _raise_at(f"{key}: Kafka {profile.name} has no such setting", where, from_options)
    static = {k: v for k, v in settings.items() if k not in only_dynamic}
    try:
        KafkaConfig.of(profile.values, static)
    except BadSetting as error:
        _raise_at(str(error), where, from_options)


def _raise_at(problem: str, where: Item, from_options: Mapping[str, str]) -> None:
    """Raises the problem with the line (or the option) of the setting that it names."""
    for key, value in from_options.items():
        if key in problem:
            raise UserError(f"--set {key}={value}: {problem}")
    lines = where.mapping() if where.is_mapping else {}
    for key, item in lines.items():
        if key in problem:
            item.fail(problem.removeprefix(f"{key}: "))
    where.fail(problem)
