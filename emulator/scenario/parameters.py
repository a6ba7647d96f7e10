"""Reads an action from YAML, by the names and types of its fields.

Owns the conversion and the checks that follow from a field's *name* in any action: `broker`,
`peer`, `replicas` and `assignment` are existing brokers (a peer may be `zookeeper`), `topic` and
`partitions` exist, `acks` is one of Kafka's three, `config` holds settings. A new action that
follows these names needs no change here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from emulator.scenario.actions.base import Action, Signed, actions, names_of
from emulator.scenario.actions.clients import CLIENT_DEFAULTS
from emulator.scenario.cluster import Cluster, read_assignment
from emulator.scenario.document import Item
from emulator.scenario.errors import ScenarioError, instead_of
from emulator.scenario.settings import dynamic_settings, topic_settings

ZOOKEEPER = "zookeeper"
_BROKER_FIELDS = frozenset({"broker", "peer", "replicas", "brokers"})
_POSITIVE = frozenset(
    {"rate", "batch", "records", "record_bytes", "num_partitions", "replication_factor", "count"}
)
_ACKS = {"0": "0", "1": "1", "all": "all", "-1": "all"}
_ACKS_MAX = 1000  # librdkafka's


def read_action(name: str, keys: dict[str, Item], cluster: Cluster) -> Action:
    """The action `name` of a time line entry.

    Its value is a mapping of parameters, or a single value: the first parameter. Further parameters
    may also be beside it: `{produce: orders, rate: 20}`.
    """
    kind, value = actions()[name], keys[name]
    fields = {f.name: f for f in msgspec.structs.fields(kind)}
    written = {key: item for key, item in keys.items() if key != name}
    for key, item in written.items():
        if key not in fields:
            item.fail(f"{name} has no {key}; {instead_of(key, fields)}")
    if value.is_mapping:
        written |= value.mapping(fields)
    elif not value.is_null:
        first = next(iter(fields), None)
        if first is None:
            value.fail(f"{name} has no parameters")
        if first in written:
            value.fail(f"is the {first}, which is given beside it as well")
        written[first] = value
    hints = get_type_hints(kind)
    parameters = {key: _convert(item, hints[key]) for key, item in written.items()}
    if "partitions" in fields and fields["partitions"].required:
        # A topic without partitions means all of its partitions.
        count = cluster.topics.get(str(parameters.get("topic", "")), 0)
        parameters.setdefault("partitions", tuple(range(count)))
    missing = [key for key, field in fields.items() if field.required and key not in parameters]
    if missing:
        value.fail(f"{name} needs {' and '.join(missing)}")
    if fields and not parameters and not kind.means_all:
        value.fail(f"{name} needs one of {', '.join(fields)}")
    for key, item in written.items():
        parameters[key] = _check(item, key, kind, parameters, cluster)
    action = kind(**parameters)
    wrong = _problem(action, cluster)
    if wrong is not None:
        value.fail(wrong)
    action.enter_topics(cluster.topics)
    return action


def _problem(action: Action, cluster: Cluster) -> str | None:
    """Why its parameters are invalid, by themselves or for this cluster."""
    if action.needs_files and cluster.storage != "files":
        return f"{action.name} needs logs in files: add storage: files to cluster"
    return action.wrong()


# -- types -----------------------------------------------------------------------------------------


def _convert(item: Item, hint: object) -> object:
    simple: dict[object, Callable[[], object]] = {
        str: item.text,
        int: item.whole,
        Signed: lambda: item.whole(least=None),
        float: item.number,
        bool: item.flag,
    }
    if hint in simple:
        return simple[hint]()
    if hint == tuple[str, int]:
        return _topic_partition(item)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _first_of(item, arguments)
    if origin is Literal:
        text = item.text()
        if text not in arguments:
            item.fail(f"expected one of {', '.join(arguments)}, not {text!r}")
        return text
    if origin is tuple:
        return tuple(_convert(one, arguments[0]) for one in item.items())
    if origin is dict:
        return {key: _convert(one, arguments[1]) for key, one in item.mapping().items()}
    raise AssertionError(f"{item.key}: an action's field of type {hint} cannot be written")


def _topic_partition(item: Item) -> tuple[str, int]:
    """`orders-0` or `[orders, 0]`."""
    parts = item.items() if item.is_list else []
    if len(parts) == 2:
        return parts[0].text(), parts[1].whole()
    topic, dash, number = item.text().rpartition("-") if item.is_scalar else ("", "", "")
    if not dash or not number.isdecimal():
        item.fail("expected a partition: orders-0 or [orders, 0]")
    return topic, int(number)


def _first_of(item: Item, kinds: tuple[object, ...]) -> object:
    """The first type that matches the value; numbers are tried before text."""
    if item.is_null and NoneType in kinds:
        return None
    trouble: ScenarioError | None = None
    for kind in sorted((k for k in kinds if k is not NoneType), key=lambda k: k is str):
        try:
            return _convert(item, kind)
        except ScenarioError as error:
            trouble = trouble or error
    raise trouble or AssertionError("a union of nothing")


# -- checks by name --------------------------------------------------------------------------------


def _check(
    item: Item, key: str, kind: type[Action], parameters: dict[str, object], cluster: Cluster
) -> object:
    """Check and convert one parameter."""
    value = parameters[key]
    if key == "config":
        return (
            topic_settings(item) if parameters.get("topic") is not None else dynamic_settings(item)
        )
    if key == "acks" and isinstance(value, str):
        return _acks(item, value)
    if key in _POSITIVE and isinstance(value, int | float) and value <= 0:
        item.fail("more than 0")
    if key == "client":
        for setting, one in item.mapping().items():
            if setting not in CLIENT_DEFAULTS:
                one.fail(f"no such client setting; {instead_of(setting, CLIENT_DEFAULTS)}")
    elif key in _BROKER_FIELDS:
        for broker in value if isinstance(value, tuple) else (value,):
            _check_broker(item, broker, cluster)
        if key == "peer" and value == parameters.get("broker"):
            item.fail("a broker has no link to itself")
    elif not (key == "topic" and kind.makes_topic):
        _check_known(item, key, parameters, cluster)
    return value


def _check_known(item: Item, key: str, parameters: dict[str, object], cluster: Cluster) -> None:
    """Check that versions, topics, directories and servers exist."""
    value = parameters[key]
    if key in ("profile", "propagation"):
        cluster.check_version(item, parameters)
    elif key == "assignment":
        read_assignment(item, cluster)
    elif key in ("partition", "partitions") and value is not None:
        for one in value if isinstance(value, tuple) else (value,):
            topic, number = one if isinstance(one, tuple) else (str(parameters.get("topic")), one)
            cluster.check_partition(item, topic, number)
    elif key == "directory" and isinstance(value, int):
        broker = parameters["broker"]
        assert isinstance(broker, int)
        cluster.check_directory(item, broker, value)
    elif key == "topic":
        cluster.check_topic(item, str(value))
    elif key == "server" and value is not None:
        servers = cluster.zookeeper.servers
        if value not in names_of(servers):
            only = "the only server is" if servers == 1 else "servers are"
            item.fail(f"{only} {', '.join(names_of(servers))}, not {value}")


def _check_broker(item: Item, value: object, cluster: Cluster) -> None:
    if isinstance(value, int):
        cluster.check_broker(item, value)
    elif value not in (None, ZOOKEEPER):
        known = ", ".join(map(str, cluster.brokers))
        item.fail(f"{value!r} is neither {ZOOKEEPER} nor a broker; the cluster has {known}")


def _acks(item: Item, value: str) -> str:
    """0.8 accepted a number of replicas; later brokers refuse it."""
    if value.isdecimal() and 1 < int(value) <= _ACKS_MAX:
        return str(int(value))
    if value not in _ACKS:
        item.fail(f"acks is 0, 1, all or (in Kafka 0.8) a number up to 1000, not {value}")
    return _ACKS[value]
