"""The controller's own exceptions: they end an event or one partition's transition, never the run.

Kafka logs them and continues. There only the log shows them; here `thread_failed` does. Source:
common/StateChangeFailedException.scala@2.6.3, java.lang.IllegalStateException where the controller
throws it.
"""

from __future__ import annotations


class ControllerFailure(Exception):
    """Any exception that the controller itself throws."""


class StateChangeFailed(ControllerFailure):
    """A partition or replica could not change its state: no replica is electable, a newer
    controller wrote its znode, or the znode does not exist."""


class IllegalState(ControllerFailure):
    """A broken assumption: a batch that does not start empty, an unknown reassignment."""
