"""AlterIsr at the broker: proposed ISRs, the request in flight, and the handling of responses.

There is one map with at most one item per partition, and one flag: the broker has one request in
flight, with all items of the map. An item stays in the map until it has a response. 2.7 checks
every 50 ms; from 2.8 on a proposal is sent at once. This module knows no ISR rules and no lock.
Source: server/AlterIsrManager.scala@2.7.2, @2.8.2; spec §7.2.
"""

from __future__ import annotations

from functools import partial

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.controller_channel import BrokerToControllerChannelManager
from emulator.kafka.broker.isr_store import AlterIsrItem, Answer
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.alter_isr import (
    CLEAR_BEFORE_CALLBACK,
    EVENT_DRIVEN_ALTER_ISR,
    KEEP_IN_FLIGHT,
)
from emulator.kafka.protocol.messages import (
    AlterIsrPartition,
    AlterIsrRequest,
    AlterIsrResponse,
)
from emulator.kernel.sync import Promise
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr

# A constant in Kafka too; from 2.8 on it is only the pause after a rejected request.
SEND_PERIOD_MS = 50

Items = tuple[AlterIsrItem, ...]


class RpcAlterIsrManager:
    """AlterIsrManagerImpl: `isr_store.AlterIsrManager` through the controller."""

    def __init__(self, context: BrokerContext, channel: BrokerToControllerChannelManager) -> None:
        self._context, self._channel = context, channel
        self._unsent: dict[TopicPartition, AlterIsrItem] = {}
        self._in_flight = False
        self._has_changed: Promise[None] = Promise(context.kernel)
        self._event_driven = EVENT_DRIVEN_ALTER_ISR in context.guards

    def start(self) -> None:
        """2.7's periodic task; runs that would find nothing are skipped."""
        if not self._event_driven:
            self._context.scheduler.schedule_when(
                "send-alter-isr",
                self._wait_until_sendable,
                self._maybe_send,
                SEND_PERIOD_MS,
                SEND_PERIOD_MS,
            )

    # -- isr_store.AlterIsrManager -----------------------------------------------------------------

    def enqueue(self, item: AlterIsrItem) -> bool:
        # Sent or not, an item leaves the map only with its response.
        if item.partition in self._unsent:
            return False
        self._unsent[item.partition] = item
        return True

    async def propagate(self, item: AlterIsrItem) -> None:
        if self._event_driven:
            await self._maybe_send()
        else:
            self._has_changed.resolve(None)

    def clear_pending(self, partition: TopicPartition) -> None:
        """Up to 2.8 this drops even an item in flight (KAFKA-12686)."""
        if KEEP_IN_FLIGHT not in self._context.guards:
            self._unsent.pop(partition, None)

    # -- requests ----------------------------------------------------------------------------------

    async def _wait_until_sendable(self) -> None:
        while not self._unsent or self._in_flight:
            self._has_changed = Promise(self._context.kernel)
            await self._has_changed.wait()

    async def _maybe_send(self) -> None:
        """Send all items, if no request is in flight, with the current broker epoch."""
        if not self._unsent or self._in_flight:
            return
        # One request in flight per broker: later proposals wait for its response.
        self._in_flight = True
        items = tuple(self._unsent.values())
        request = AlterIsrRequest(
            self._context.broker,
            self._context.broker_epoch,
            tuple(
                AlterIsrPartition(
                    item.partition,
                    item.leader_and_isr.leader_epoch,
                    item.leader_and_isr.isr,
                    item.leader_and_isr.zk_version,
                    item.member_epochs,
                )
                for item in items
            ),
            self._context.profile.request_versions["AlterIsr"],
        )
        self._channel.send(request, partial(self._handle_alter_isr_response, items))

    async def _handle_alter_isr_response(self, items: Items, response: AlterIsrResponse) -> None:
        """Call back each item of the request. Items without a result stay and are sent again. 2.8
        then sends the remaining items at once, or after 50 ms if the whole request was rejected."""
        clears_first = CLEAR_BEFORE_CALLBACK in self._context.guards
        try:
            # If the whole request was rejected (for example a stale broker epoch) all items stay
            # and are sent again with the broker epoch of that time.
            altered = {p.partition: p for p in response.partitions}
            for item in items if response.error is Errors.NONE else ():
                result = altered.get(item.partition)
                if result is None:
                    continue
                answer: Answer = result.error
                if result.error is Errors.NONE:
                    answer = LeaderAndIsr(
                        result.leader, result.leader_epoch, result.isr, result.zk_version
                    )
                if clears_first:
                    self._unsent.pop(item.partition, None)
                    await item.answered(answer)
                    continue
                try:
                    await item.answered(answer)
                finally:
                    # A proposal that the callback made was rejected, because this item was still in
                    # the map (KAFKA-14010).
                    self._unsent.pop(item.partition, None)
        finally:
            # Even if a callback fails; the items after it then have no result and stay.
            self._in_flight = False
            self._has_changed.resolve(None)
        if not self._event_driven:
            return
        if response.error is Errors.NONE:
            await self._maybe_send()
        else:
            self._context.schedule_once("send-alter-isr", self._maybe_send, SEND_PERIOD_MS)
