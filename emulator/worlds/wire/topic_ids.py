"""Topic ids (KIP-516), as controllers of 2.8 and later send them to brokers of this process.

An id belongs to one topic for ever, so brokers of one process share them. Emulated controllers give
topics no ids: a broker learns those of real Kafka, reads them and returns them.
"""

from __future__ import annotations

from uuid import UUID


class UnknownTopicId(Exception):
    """No controller has sent this id."""


_names: dict[UUID, str] = {}
_ids: dict[str, UUID] = {}


def learn(topic: str, topic_id: UUID | None) -> None:
    """From a request that the broker has accepted. None: the topic has no id."""
    if topic_id is not None:
        _names[topic_id] = topic
        _ids[topic] = topic_id


def name_of(topic_id: UUID | None) -> str:
    """Raises UnknownTopicId."""
    if topic_id is None or topic_id not in _names:
        raise UnknownTopicId(topic_id)
    return _names[topic_id]


def id_of(topic: str) -> UUID | None:
    """The last one, if a topic was created again."""
    return _ids.get(topic)
