"""Parses an action from words: `pause 2`, `cut 1 zookeeper`, `produce orders-0 5`.

The first word is the name of an action of the registry; then follow its fields in order, or
`KEY=VALUE` for any field. Owns the shorter spellings; `parameters` checks the values, as for
scenarios.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import msgspec

from emulator.scenario.actions.base import Action, actions
from emulator.scenario.cluster import Cluster
from emulator.scenario.document import read_document
from emulator.scenario.errors import ScenarioError, UserError, instead_of
from emulator.scenario.parameters import ZOOKEEPER, read_action
from emulator.scenario.schema import Scenario
from emulator.scenario.units import DURATION, duration_us
from emulator.scenario.version import Version

SHORT = {"cut": "cut_link", "delay": "delay_link", "stop": "terminate"}
"""Short names that the registry does not have."""

_HAND_OVER, _PRODUCER = "send", "produce"
_PARTITION = re.compile(r"(.+)-(\d+)")


def cluster_of(scenario: Scenario, done: Iterable[Action] = ()) -> Cluster:
    """The brokers and topics, including topics created by the scenario's steps and by actions so
    far."""
    cluster = Cluster(
        scenario.boots,
        scenario.settings,
        scenario.broker_settings,
        scenario.zookeeper,
        Version(scenario.profile, scenario.guards, scenario.propagation),
        scenario.broker_profiles,
    )
    for action in (*(step.action for step in scenario.steps), *done):
        topic, assignment = (getattr(action, name, None) for name in ("topic", "assignment"))
        if topic is not None and assignment is not None:
            cluster.topics[topic] = cluster.topics.get(topic, 0) + len(assignment)
    return cluster


def read_typed(words: list[str], cluster: Cluster) -> Action:
    """The action for a line of words. Raises UserError."""
    name, *arguments = words
    known = actions()
    name = SHORT.get(name, name) if name not in known else name
    if name == _PRODUCER and not any(word.startswith("rate=") for word in arguments):
        name = _HAND_OVER
    if name not in known:
        raise UserError(f"there is no {name}; {instead_of(name, [*known, *SHORT])}")
    values = _values(known[name], arguments, cluster)
    text = ", ".join(f"{_quoted(key)}: {value}" for key, value in values.items())
    cluster = replace(cluster, topics=dict(cluster.topics))
    try:
        item = read_document(name, f"{{{name}: {{{text}}}}}" if values else f"{{{name}: }}")
        return read_action(name, item.mapping(), cluster)
    except ScenarioError as error:
        where = "" if error.key in ("", name) else f"{error.key.removeprefix(f'{name}.')}: "
        raise UserError(f"{where}{error.problem}") from None


def usage(name: str) -> str:
    """`delay_link BROKER PEER DELAY_MS`; `send TOPIC[-N] [RECORDS]`, where the first word has the
    partition."""
    words = {
        field.name: field.name.upper() if field.required else f"[{field.name.upper()}]"
        for field in msgspec.structs.fields(actions()[name])
    }
    if {"topic", "partitions"} <= words.keys():
        words["topic"] = "TOPIC[-N]"
        del words["partitions"]
    return " ".join((name, *words.values()))


def _values(kind: type[Action], words: list[str], cluster: Cluster) -> dict[str, str]:
    """The value of each field as YAML."""
    hints = get_type_hints(kind)
    free = [field.name for field in msgspec.structs.fields(kind)]
    values: dict[str, str] = {}
    settings: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in hints:
            values[key] = _as_yaml(_in_unit(key, value), hints[key])
        elif equals and "config" in hints:
            settings[key] = value
        else:
            _positional(word, kind, hints, free, values, cluster)
    if settings:
        pairs = (f"{_quoted(key)}: {_quoted(value)}" for key, value in settings.items())
        values["config"] = f"{{{', '.join(pairs)}}}"
    return values


def _positional(
    word: str,
    kind: type[Action],
    hints: dict[str, object],
    free: list[str],
    values: dict[str, str],
    cluster: Cluster,
) -> None:
    """Assign a word without a key to the next field without a value."""
    left = [key for key in free if key not in values]
    if word == ZOOKEEPER and "server" in left:
        values["server"] = word
        return
    if not left:
        several = "assignment" if "assignment" in values else ""
        if not several:
            raise UserError(f"{word}: too much; {usage(str(kind.__struct_config__.tag))}")
        values[several] = f"{values[several][:-1]}, {_as_yaml(word, tuple[int, ...])}]"
        return
    key, match = left[0], _PARTITION.fullmatch(word)
    numbered = next((name for name in ("partitions", "partition") if name in left), "")
    if key == "topic" and numbered and match and word not in cluster.topics:
        values["topic"] = _quoted(match[1])
        values[numbered] = f"[{match[2]}]" if numbered == "partitions" else match[2]
    elif key == "config" and "assignment" in values:
        values["assignment"] = f"{values['assignment'][:-1]}, {_as_yaml(word, tuple[int, ...])}]"
    else:
        values[key] = _as_yaml(_in_unit(key, word), hints[key])
        if key == "topic" and "partitions" in free:
            free.remove("partitions")  # all partitions, unless a key names them


def _in_unit(key: str, word: str) -> str:
    """Convert a duration for a field in milliseconds: `50ms`, `2s`."""
    if not key.endswith("_ms"):
        return word
    if re.fullmatch(DURATION, word):
        us = duration_us(word)
        if us % 1000:
            raise UserError(f"{key}: {word!r} is finer than a millisecond")
        return str(us // 1000)
    if not re.fullmatch(r"-?\d+", word):
        raise UserError(f"{key}: expected milliseconds or a time such as 50ms, not {word!r}")
    return word


def _as_yaml(word: str, hint: object) -> str:
    """Add the brackets to a list: `1,2,3`."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    lists = [kind for kind in kinds if get_origin(kind) is tuple]
    if word.startswith(("[", "{")) or not lists:
        return word if word.startswith(("[", "{")) else _quoted(word)
    inner = get_args(lists[0])[0]
    several = get_origin(inner) is tuple and inner != tuple[str, int]
    return f"[[{word}]]" if several else f"[{word}]"


def _quoted(word: str) -> str:
    """A double-quoted YAML string, which every reader of single values takes literally."""
    return msgspec.json.encode(word).decode()
