"""Exceptions of the controller's own: they end an event or one partition's transition, never the
run.

Kafka logs them and goes on; nothing but the log shows them there, `thread_failed` here.
Source: common/StateChangeFailedException.scala@2.6.3, java.lang.IllegalStateException where the
controller throws it.
"""

from __future__ import annotations


class ControllerFailure(Exception):
    """Anything that the controller itself throws."""


class StateChangeFailed(ControllerFailure):
    """A partition or replica could not change its state: nobody is electable, a newer controller
    wrote its znode, or there is none."""


class IllegalState(ControllerFailure):
    """What must not be: a batch that does not begin empty, a reassignment that is not known."""
