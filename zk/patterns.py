"""Znode paths with placeholders for topics, partitions, brokers and sequence numbers.

`/brokers/topics/orders/partitions/3/state` becomes `/brokers/topics/<topic>/partitions/<n>/state`,
so that requests can be counted by kind. Strings only: this module knows Kafka's paths but no
payloads. Other paths keep their names and lose their numbers.
"""

from __future__ import annotations

import re

from zk import paths

_NAMED = {
    paths.TOPICS: "<topic>",
    paths.DELETE_TOPICS: "<topic>",
    paths.BROKER_IDS: "<broker>",
    "/config/topics": "<topic>",
    "/config/brokers": "<broker>",
    "/config/clients": "<client>",
    "/config/users": "<user>",
    paths.CONSUMERS: "<group>",
}
"""The parents whose children have names of their own."""
_SEQUENCE = re.compile(r"\d{10,}$")
_NUMBER = re.compile(r"\d+")


def pattern_of(path: str) -> str:
    """The path's pattern."""
    done: list[str] = []
    for word in path.split("/")[1:]:
        parent = "/" + "/".join(done) if done else ""
        done.append(_NAMED.get(parent) or _open(word))
    return "/" + "/".join(done)


def _open(word: str) -> str:
    if _NUMBER.fullmatch(word):
        return "<n>"
    return _SEQUENCE.sub("<seq>", word)
