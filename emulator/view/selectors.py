"""Parses users' selectors of parts of a run: `orders-0`, `orders-0@v8`, `broker-2`, `12.5s`.

Owns these spellings and the error for a wrong one (`NotInRun`: one line that lists what the run
has). It must not know commands and their options.
"""

from __future__ import annotations

import re

from emulator.trace.state.timeline import Timeline
from emulator.trace.values import TopicPartition
from emulator.view.event_text import CLIENTS, CONTROLLER, ZOOKEEPER

_UNITS = {"": 1_000_000, "us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000}
_TIME = re.compile(r"(-?\d+(?:\.\d+)?)\s*(us|ms|s|min|)")
_LISTED = 8


class NotInRun(Exception):
    """The run has no such part, or the text is malformed; the message is one line."""


def partition(text: str, timeline: Timeline) -> TopicPartition:
    """Parse `orders-0`, which must be in the run."""
    topic, _, number = text.rpartition("-")
    known = ", ".join(map(str, timeline.partitions[:_LISTED])) or "none"
    if len(timeline.partitions) > _LISTED:
        known += f" and {len(timeline.partitions) - _LISTED} more"
    if not topic or not number.isdecimal():
        raise NotInRun(f"{text!r} is not a partition: write it as orders-0; the run has {known}")
    name = TopicPartition(topic, int(number))
    if name not in timeline.partitions:
        raise NotInRun(f"{name}: no such partition in this run; it has {known}")
    return name


def change(text: str, timeline: Timeline) -> tuple[TopicPartition, int]:
    """Parse `orders-0@v8` (or `@8`): a partition of the run and a version, which need not exist."""
    name, at, version = text.rpartition("@")
    number = version.removeprefix("v")
    if not at or not number.isdecimal():
        raise NotInRun(f"{text!r} is not an ISR change: write it as orders-0@v8")
    return partition(name, timeline), int(number)


def actor(text: str, timeline: Timeline) -> str:
    """The lane for `controller`, `zookeeper`, `clients`, or a broker as `2`, `b2`, `broker-2`."""
    name = text.strip().lower()
    if name in (CONTROLLER, ZOOKEEPER, CLIENTS):
        return name
    number = re.fullmatch(r"(?:b|broker)?[- ]?(\d+)", name)
    if number is not None and int(number[1]) in timeline.brokers:
        return number[1]
    brokers = ", ".join(map(str, timeline.brokers)) or "none"
    raise NotInRun(
        f"unknown actor {text!r}: use controller, zookeeper, clients, or broker {brokers}"
    )


def time_us(text: str) -> int:
    """Parse `12.5s`, `500ms`, `1.5min` or plain seconds since the cluster was up; may be
    negative."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise NotInRun(
            f"{text!r} is not a time: write 12.5s, 500ms or 1.5min since the cluster was up"
        )
    return round(float(match[1]) * _UNITS[match[2]])
