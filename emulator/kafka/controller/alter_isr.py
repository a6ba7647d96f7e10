"""AlterIsr at the controller: it validates proposals, writes accepted ones and responds.

`validate` decides about one partition from the cache alone; it works on plain values so that
searches can branch on it. Each accepted proposal is one fenced conditional write. The controller
reads the new states back into its cache and queues UpdateMetadata for every broker before it
responds. This module knows no queue and no connection. Source:
controller/KafkaController.scala@2.7.2 processAlterIsr, @3.3.2 tryProcessAlterPartition; spec §7.4.
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
"""The first request version whose sender knows the error INELIGIBLE_REPLICA."""


def validate(
    proposed: LeaderAndIsr,
    cached: LeaderAndIsr | None,
    live: Collection[int],
    request_version: int,
    guards: Container[Guard],
) -> Errors | LeaderAndIsr | None:
    """An error; or the current state, when it equals the proposal (no write); or None, when the
    proposal is to be written. `proposed` has the sender as leader, and the version that it
    replaces.
    """
    # Up to 3.2 the controller does not check that the sender is the leader, that its epoch is not
    # greater, or that the members are alive. The conditional write catches most of it (spec §7.4).
    if cached is None:
        return Errors.UNKNOWN_TOPIC_OR_PARTITION
    strict = AHEAD_OF_THE_CONTROLLER in guards
    if proposed.leader_epoch > cached.leader_epoch and GREATER_EPOCH_IS_A_SUCCESSORS not in guards:
        return Errors.FENCED_LEADER_EPOCH
    # 3.3: the leader knows a newer state, so another controller wrote it: this one must not decide.
    if strict and (
        proposed.zk_version > cached.zk_version or proposed.leader_epoch > cached.leader_epoch
    ):
        return Errors.NOT_CONTROLLER
    if proposed.leader_epoch < cached.leader_epoch:
        return Errors.FENCED_LEADER_EPOCH
    outdated = strict and proposed.zk_version < cached.zk_version
    if outdated and DONE_BEFORE_OUTDATED not in guards:
        return Errors.INVALID_UPDATE_VERSION
    # equalsIgnoreZk: the comparison ignores versions but not the order of the ISR. A retry thus
    # finds that its first attempt was written.
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
        # An older leader does not know INELIGIBLE_REPLICA.
        return Errors.INELIGIBLE_REPLICA if is_known else Errors.OPERATION_NOT_ATTEMPTED
    return None


class AlterIsrs:
    """How the active controller handles AlterIsr."""

    def __init__(self, parts: ControllerParts, reassignments: Reassignments) -> None:
        self._parts, self._reassignments = parts, reassignments
        self._host, self._context = parts.host, parts.context

    async def process(
        self, request: AlterIsrRequest, respond: Callable[[AlterIsrResponse], None]
    ) -> None:
        """Handle one AlterIsrReceived event: respond first, then complete reassignments. Any
        exception, even ControllerMoved, becomes the error of the whole response."""
        # The epoch must match exactly, unlike in requests to brokers: neither an earlier process of
        # the broker nor one whose registration this controller has not read yet may change an ISR.
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
        # Respond before the reassignments: these write to ZooKeeper, and the leader sends no
        # further proposals until it has the response.
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
        """Respond with one error for the whole request."""
        partitions = tuple(p.partition for p in request.partitions)
        self._host.emit(events.AlterIsrRefused, request.broker, partitions, error.name)
        respond(AlterIsrResponse(error))

    async def _alter(self, request: AlterIsrRequest) -> dict[TopicPartition, AlterIsrResult]:
        context, host = self._context, self._host
        # Kafka iterates a hash map here: the order of writes is that of Scala's table (spec §6.15).
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
            # KIP-903: the member's fetches came from an earlier process of that broker.
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
            # One fenced conditional write each, and no retry: a leader with an outdated version has
            # to learn the new state first.
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
        await host.kernel.checkpoint("alter_isr_processed")
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
            reads = context.order.selected(altered)
            await self._parts.update_leadership_cache(reads, "AlterIsr")
            await host.kernel.checkpoint("alter_isr_processed")
        # UpdateMetadata covers all proposed partitions, including the refused ones
        # (processAlterIsr).
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
