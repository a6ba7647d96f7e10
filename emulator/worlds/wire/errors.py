"""Errors in received bytes.

The connection is closed with the reason (as Kafka's SocketServer does); there is no other effect.
"""


class Malformed(Exception):
    """These bytes are not a known Kafka message; the text says why."""


class Unsupported(Malformed):
    """An API or a version that this broker does not support."""
