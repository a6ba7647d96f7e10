"""Legal topic names.

A topic name becomes part of paths, in ZooKeeper and on disk: a client's name is validated here
before anything else happens. Source: clients/…/common/internals/Topic.java@2.6.3 validate.
"""

from __future__ import annotations

import re

GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC = "__consumer_offsets", "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
"""Topics that brokers write themselves; clients must not."""

NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def illegal_name_reason(topic: str) -> str:
    """Kafka's error message; empty if the name is legal."""
    if not topic:
        return "Topic name is illegal, it can't be empty"
    if topic in (".", ".."):
        return 'Topic name cannot be "." or ".."'
    if len(topic) > NAME_LENGTH_MAX:
        most = f"it can't be longer than {NAME_LENGTH_MAX} characters"
        return f"Topic name is illegal, {most}, topic name: {topic}"
    if not _LEGAL.fullmatch(topic):
        only = "a character other than ASCII alphanumerics, '.', '_' and '-'"
        return f'Topic name "{topic}" is illegal, it contains {only}'
    return ""
