"""What can be wrong with bytes that came in.

The connection that they came on is closed with the reason (Kafka's SocketServer does the same);
nothing else comes of it.
"""


class Malformed(Exception):
    """These bytes are no message of Kafka's that we know; the message says why."""


class Unsupported(Malformed):
    """An API or a version that this broker does not speak."""
