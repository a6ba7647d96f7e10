"""Validation of topic names and topic settings. Plain functions.

Names, types and bounds are those of 2.6.3, for every version. Sources:
clients/…/common/internals/Topic.java@2.6.3 validate, hasCollision; log/LogConfig.scala@2.6.3
validate, configDef.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.model.topic_names import illegal_name_reason

_INT, _LONG = 2**31 - 1, 2**63 - 1
_REPLICAS = re.compile(r"(\*|\d+:\d+(,\d+:\d+)*)?")


class BadValue(KafkaError):
    """ConfigException: the setting exists but cannot have this value."""

    def __init__(self, name: str, value: str, why: str) -> None:
        message = f"Invalid value {value} for configuration {name}: {why}"
        super().__init__(Errors.INVALID_CONFIG, message)


def check_topic_name(topic: str) -> None:
    """Topic.validate. Raises KafkaError."""
    if why := illegal_name_reason(topic):
        raise _illegal(why)


def can_collide(topic: str) -> bool:
    """Metric names use `_` instead of a dot, so two such topics could have the same metrics."""
    return "." in topic or "_" in topic


def check_collisions(topic: str, topics: Iterable[str]) -> None:
    """No other topic has the same name after replacing dots by underscores. Raises KafkaError."""
    alike = [t for t in topics if t != topic and t.replace(".", "_") == topic.replace(".", "_")]
    if alike:
        raise _illegal(f"Topic '{topic}' collides with existing topics: {', '.join(alike)}")


def check_topic_settings(settings: Mapping[str, str]) -> None:
    """LogConfig.validate: names first, then values. Raises KafkaError."""
    for name in settings:
        if name not in _SETTINGS:
            raise KafkaError(Errors.INVALID_CONFIG, f"Unknown topic config name: {name}")
    for name, value in settings.items():
        why = _SETTINGS[name](value.strip())
        if why:
            raise BadValue(name, value, why)


def _illegal(message: str) -> KafkaError:
    return KafkaError(Errors.INVALID_TOPIC_EXCEPTION, message)


Check = Callable[[str], str]
"""The error message for a value; empty if it is valid."""


def _whole(most: int, least: int | None = None) -> Check:
    kind = "INT" if most == _INT else "LONG"

    def check(text: str) -> str:
        # As Java parses numbers: Python also accepts underscores and blanks.
        number = int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else None
        if number is None or not -most - 1 <= number <= most:
            return f"Not a number of type {kind}"
        return f"Value must be at least {least}" if least is not None and number < least else ""

    return check


def _ratio(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return "Not a number of type DOUBLE"
    return "" if 0 <= number <= 1 else "Value must be between 0 and 1"


def _boolean(text: str) -> str:
    known = text.lower() in ("true", "false")
    return "" if known else "Expected value to be either true or false"


def _one_of(*allowed: str) -> Check:
    return lambda text: "" if text in allowed else f"String must be one of: {', '.join(allowed)}"


def _policies(text: str) -> str:
    check = _one_of("compact", "delete")
    return next((why for why in map(check, re.split(r"\s*,\s*", text)) if why), "")


def _throttled(text: str) -> str:
    pairs = "[partitionId]:[brokerId]"
    return "" if _REPLICAS.fullmatch(text) else f"must be '*' or a list of {pairs}"


_SETTINGS: dict[str, Check] = {
    "cleanup.policy": _policies,
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "delete.retention.ms": _whole(_LONG, 0),
    "file.delete.delay.ms": _whole(_LONG, 0),
    "flush.messages": _whole(_LONG, 0),
    "flush.ms": _whole(_LONG, 0),
    "follower.replication.throttled.replicas": _throttled,
    "index.interval.bytes": _whole(_INT, 0),
    "leader.replication.throttled.replicas": _throttled,
    "max.compaction.lag.ms": _whole(_LONG, 1),
    "max.message.bytes": _whole(_INT, 0),
    "message.downconversion.enable": _boolean,
    # Kafka checks the release names here (ApiVersionValidator); this module does not list them and
    # accepts any.
    "message.format.version": lambda _: "",
    "message.timestamp.difference.max.ms": _whole(_LONG, 0),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": _ratio,
    "min.compaction.lag.ms": _whole(_LONG, 0),
    "min.insync.replicas": _whole(_INT, 1),
    "preallocate": _boolean,
    # No minimum: a negative number means no limit.
    "retention.bytes": _whole(_LONG),
    "retention.ms": _whole(_LONG, -1),
    # The smallest size of a record in the oldest format (LegacyRecord.RECORD_OVERHEAD_V0).
    "segment.bytes": _whole(_INT, 14),
    "segment.index.bytes": _whole(_INT, 0),
    "segment.jitter.ms": _whole(_LONG, 0),
    "segment.ms": _whole(_LONG, 1),
    "unclean.leader.election.enable": _boolean,
}
