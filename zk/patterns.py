"""A znode's path with what varies left open: topics, partitions, brokers, sequence numbers.

`/brokers/topics/orders/partitions/3/state` is `/brokers/topics/<topic>/partitions/<n>/state`, so
that requests can be counted by what they are about. Strings only; knows Kafka's paths and no
payloads. Paths that are not Kafka's keep their words and lose their numbers.
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
"""Below these a child has a name of its own."""
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
