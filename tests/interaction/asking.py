"""A leader that asks the controller for another ISR: the stage of transcripts about AlterIsr.

The leader is broker 1, its controller broker 2; what it has asked for waits for an answer.
"""

from __future__ import annotations

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import AlterIsrResponse, AlterIsrResult
from emulator.trace.values import TopicPartition
from tests.interaction.hosting import (
    ORDERS_0,
    Hosting,
    fetch,
    leading,
    shrink_pass,
)
from tests.interaction.playbook import (
    Incoming,
    Playbook,
    after_ms,
    answers,
)

EXPANSION = "PendingExpandIsr 1,2,3"
ASKS = "to 2: AlterIsr of epoch 50 (orders-0 epoch 4 isr 1,2,3 for v5)"
SHRINK = "PendingShrinkIsr 1,2"
ASKS_TO_SHRINK = "to 2: AlterIsr of epoch 50 (orders-0 epoch 4 isr 1,2 for v5)"


def altered(
    *isr: int, version: int = 6, epoch: int = 4, partition: TopicPartition = ORDERS_0
) -> AlterIsrResult:
    return AlterIsrResult(partition, Errors.NONE, 1, epoch, isr, version)


def refused(error: Errors, partition: TopicPartition = ORDERS_0) -> AlterIsrResult:
    return AlterIsrResult(partition, error)


def answer(*partitions: AlterIsrResult, by: int = 2) -> Incoming:
    """The controller answers the oldest request."""
    return answers(by, AlterIsrResponse(Errors.NONE, partitions))


def answer_to_all(error: Errors, *, by: int = 2) -> Incoming:
    return answers(by, AlterIsrResponse(error))


def fetch_3(at: int = 10) -> Incoming:
    return fetch(3, at=at, max_wait_ms=0)


def pending(profile: str = "2.7", **guards: bool) -> Playbook:
    """A leader with ISR 1,2 that has proposed 1,2,3."""
    switched = {name.replace("_", "-"): on for name, on in guards.items()}
    play = leading(isr=(1, 2), profile=profile, guards=switched)
    play >> fetch_3() << EXPANSION
    if profile != "2.7":
        return play << ASKS << "fetch-3: nothing, hw 10"
    return play << "fetch-3: nothing, hw 10" >> after_ms(50) << ASKS


def shrinking(profile: str = "2.7", **settings: object) -> Hosting:
    """A leader that has asked to let 3 go."""
    play = leading(profile=profile, **settings)
    play.follower(3, 9, caught_up_ms_ago=30_001)
    play >> shrink_pass() << SHRINK
    if profile == "2.7":
        play << "isr-expiration: done" >> after_ms(50) << ASKS_TO_SHRINK
    else:
        play << ASKS_TO_SHRINK << "isr-expiration: done"
    return play
