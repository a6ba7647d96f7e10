"""AlterIsr at the controller: which proposals it takes, what it writes, what it answers.

`validate` decides about one partition, from the cache alone: plain values, for searches to branch
on. What is taken is written with one fenced conditional write each, read back into the cache and
told to every broker before the answer goes. Knows no queue and no connection.
Source: controller/KafkaController.scala@2.7.2 processAlterIsr, @3.3.2 tryProcessAlterPartition;
spec §7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container

from emulator.kafka.controller.errors import ControllerFailure
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.reassignment import Reassignments
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.alter_isr import (
    AHEAD_OF_THE_CONTROLLER,
    DONE_BEFORE_OUTDATED,
    ELIGIBLE_MEMBERS,
    GREATER_EPOCH_IS_A_SUCCESSORS,
)
from emulator.kafka.profiles.guards.base import Guard
from emulator.kafka.protocol.messages import (
    AlterIsrRequest,
    AlterIsrResponse,
    AlterIsrResult,
)
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr
from zk.errors import ControllerMoved, ZooKeeperError
from zk.scala.scala_order import table_order, topic_partition_hash

INELIGIBLE_REPLICA_FROM = 2
"""The request version whose sender knows INELIGIBLE_REPLICA."""


def validate(
    proposed: LeaderAndIsr,
    cached: LeaderAndIsr | None,
    live: Collection[int],
    request_version: int,
    guards: Container[Guard],
) -> Errors | LeaderAndIsr | None:
    """An error, the state that there is already (no write), or None: write it. `proposed` has the
    sender as leader and the version that it is to replace."""
    # Up to 3.2 nothing else is tested: not that the sender leads, nor that its epoch is not
    # greater, nor that members live. The conditional write catches most of it (spec §7.4).
    if cached is None:
        return Errors.UNKNOWN_TOPIC_OR_PARTITION
    strict = AHEAD_OF_THE_CONTROLLER in guards
    if proposed.leader_epoch > cached.leader_epoch and GREATER_EPOCH_IS_A_SUCCESSORS not in guards:
        return Errors.FENCED_LEADER_EPOCH
    if strict and (
        proposed.zk_version > cached.zk_version or proposed.leader_epoch > cached.leader_epoch
    ):
        return Errors.NOT_CONTROLLER
    if proposed.leader_epoch < cached.leader_epoch:
        return Errors.FENCED_LEADER_EPOCH
    outdated = strict and proposed.zk_version < cached.zk_version
    if outdated and DONE_BEFORE_OUTDATED not in guards:
        return Errors.INVALID_UPDATE_VERSION
    # equalsIgnoreZk: versions aside, the ISR in order. A retry finds its own work done.
    if (proposed.leader, proposed.leader_epoch, proposed.isr) == (
        cached.leader,
        cached.leader_epoch,
        cached.isr,
    ):
        return cached
    if outdated:
        return Errors.INVALID_UPDATE_VERSION
    if ELIGIBLE_MEMBERS in guards and any(b not in live for b in proposed.isr):
        is_known = request_version >= INELIGIBLE_REPLICA_FROM
        return Errors.INELIGIBLE_REPLICA if is_known else Errors.OPERATION_NOT_ATTEMPTED
    return None


class AlterIsrs:
    """What the active controller does with AlterIsr."""

    def __init__(self, parts: ControllerParts, reassignments: Reassignments) -> None:
        self._parts, self._reassignments = parts, reassignments
        self._host, self._context = parts.host, parts.context

    async def process(
        self, request: AlterIsrRequest, respond: Callable[[AlterIsrResponse], None]
    ) -> None:
        """One AlterIsrReceived event: answered first, then reassignments that it completes. An
        exception, even that a newer controller is there, is the answer to the whole request."""
        # Exactly its epoch, unlike in requests to brokers: neither a process before nor one that
        # this controller has not heard of yet may change an ISR.
        live = self._context.live_brokers.get(request.broker)
        if live is None or live[1] != request.broker_epoch:
            self.refuse(request, Errors.STALE_BROKER_EPOCH, respond)
            return
        try:
            answers = await self._alter(request)
        except (ZooKeeperError, ControllerMoved, ControllerFailure) as error:
            self._host.failed("AlterIsr", error)
            self.refuse(request, Errors.UNKNOWN_SERVER_ERROR, respond)
            return
        # Before the reassignments: they write to ZooKeeper, and the leader holds its next proposals
        # back until it is answered.
        respond(AlterIsrResponse(Errors.NONE, tuple(answers.values())))
        for partition, answer in answers.items():
            if answer.error is Errors.NONE:
                await self._reassignments.isr_change(partition)

    def refuse(
        self,
        request: AlterIsrRequest,
        error: Errors,
        respond: Callable[[AlterIsrResponse], None],
    ) -> None:
        """The same answer for all partitions."""
        partitions = tuple(p.partition for p in request.partitions)
        self._host.emit(events.AlterIsrRefused, request.broker, partitions, error.name)
        respond(AlterIsrResponse(error))

    async def _alter(self, request: AlterIsrRequest) -> dict[TopicPartition, AlterIsrResult]:
        context, host = self._context, self._host
        proposals = table_order(request.partitions, lambda p: topic_partition_hash(*p.partition))
        answers: dict[TopicPartition, AlterIsrResult] = {}
        writes: dict[TopicPartition, LeaderAndIsr] = {}
        for proposal in proposals:
            partition = proposal.partition
            proposed = LeaderAndIsr(
                request.broker,
                proposal.leader_epoch,
                proposal.new_isr,
                proposal.current_isr_version,
            )
            cached = context.leadership.get(partition)
            decision = validate(
                proposed,
                None if cached is None else cached.leader_and_isr,
                context.live,
                request.version,
                host.guards,
            )
            # KIP-903: a member's fetches were those of a process that is gone.
            if decision is None and any(
                epoch >= 0
                and (member not in context.live_brokers or context.live_brokers[member][1] != epoch)
                for member, epoch in zip(proposal.new_isr, proposal.member_epochs, strict=False)
            ):
                decision = Errors.INELIGIBLE_REPLICA
            if decision is None:
                writes[partition] = proposed
            else:
                answers[partition] = _answer(partition, decision)
        if writes:
            # One fenced conditional write each, and no second try: a leader whose version is old
            # has to learn the new one first.
            written = await self._parts.zk_client.update_leader_and_isr(
                writes, context.epoch, context.epoch_zk_version
            )
            for partition, result in written.finished.items():
                if isinstance(result, ZooKeeperError):
                    answers[partition] = _answer(partition, Errors.UNKNOWN_SERVER_ERROR)
                else:
                    answers[partition] = _answer(partition, result)
            for partition in written.to_retry:
                answers[partition] = _answer(partition, Errors.INVALID_UPDATE_VERSION)
        await host.kernel.checkpoint("controller_event")
        for proposal in proposals:
            answer = answers[proposal.partition]
            host.emit(
                events.AlterIsrDecided,
                proposal.partition,
                request.broker,
                proposal.new_isr,
                answer.error.name,
                answer.leader_epoch,
                answer.isr,
                answer.zk_version,
            )
        altered = [p for p in writes if answers[p].error is Errors.NONE]
        if altered:
            await self._parts.update_leadership_cache(altered, "AlterIsr")
        # Of all that were proposed, the refused ones too (processAlterIsr).
        await self._parts.send_update_metadata(
            context.live_or_shutting_down, [p.partition for p in proposals]
        )
        return answers


def _answer(partition: TopicPartition, decision: Errors | LeaderAndIsr) -> AlterIsrResult:
    if isinstance(decision, Errors):
        return AlterIsrResult(partition, decision)
    return AlterIsrResult(
        partition,
        Errors.NONE,
        decision.leader,
        decision.leader_epoch,
        decision.isr,
        decision.zk_version,
    )
