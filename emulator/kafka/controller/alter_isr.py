"""AlterIsr at the controller: which proposals it takes, what it writes, what it answers.

`validate` decides about one partition, from the cache alone: plain values, for searches to branch
on. What is taken is written with one fenced conditional write each, read back into the cache and
told to every broker before the answer goes. Knows no queue and no connection.
Source: controller/KafkaController.scala@2.7.2 processAlterIsr, @3.3.2 tryProcessAlterPartition;
spec §7.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Container, Sequence

from emulator.kafka.controller.errors import ControllerFailure
from emulator.kafka.controller.machinery import Machinery
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
    AlteredIsr,
    AlterIsrPartition,
    AlterIsrRequest,
    AlterIsrResponse,
)
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr
from zk.errors import ControllerMoved, ZooKeeperError
from zk.scala.scala_order import table_order, topic_partition_hash

TELLS_INELIGIBLE_FROM = 2
"""The request version whose sender knows INELIGIBLE_REPLICA."""


def validate(
    wanted: LeaderAndIsr,
    cached: LeaderAndIsr | None,
    live: Collection[int],
    request_version: int,
    guards: Container[Guard],
) -> Errors | LeaderAndIsr | None:
    """An error, the state that there is already (no write), or None: write it. `wanted` has the
    sender as leader and the version that it is to replace. Up to 3.2 nothing else is tested: not
    that the sender leads, nor that its epoch is not greater, nor that members live."""
    if cached is None:
        return Errors.UNKNOWN_TOPIC_OR_PARTITION
    strict = AHEAD_OF_THE_CONTROLLER in guards
    if wanted.leader_epoch > cached.leader_epoch and GREATER_EPOCH_IS_A_SUCCESSORS not in guards:
        return Errors.FENCED_LEADER_EPOCH
    if strict and (
        wanted.zk_version > cached.zk_version or wanted.leader_epoch > cached.leader_epoch
    ):
        return Errors.NOT_CONTROLLER
    if wanted.leader_epoch < cached.leader_epoch:
        return Errors.FENCED_LEADER_EPOCH
    outdated = strict and wanted.zk_version < cached.zk_version
    if outdated and DONE_BEFORE_OUTDATED not in guards:
        return Errors.INVALID_UPDATE_VERSION
    if _is_so_already(wanted, cached):
        return cached
    if outdated:
        return Errors.INVALID_UPDATE_VERSION
    if ELIGIBLE_MEMBERS in guards and any(b not in live for b in wanted.isr):
        told = request_version >= TELLS_INELIGIBLE_FROM
        return Errors.INELIGIBLE_REPLICA if told else Errors.OPERATION_NOT_ATTEMPTED
    return None


def _is_so_already(wanted: LeaderAndIsr, cached: LeaderAndIsr) -> bool:
    """Versions aside, the ISR in order (equalsIgnoreZk): a retry finds its own work done."""
    return (wanted.leader, wanted.leader_epoch, wanted.isr) == (
        cached.leader,
        cached.leader_epoch,
        cached.isr,
    )


class AlterIsrs:
    """What the active controller does with AlterIsr."""

    def __init__(
        self,
        machinery: Machinery,
        reassignments: Reassignments,
        update_leadership_cache: Callable[[Sequence[TopicPartition], str], Awaitable[None]],
    ) -> None:
        self._machinery, self._reassignments = machinery, reassignments
        self._host, self._context = machinery.host, machinery.context
        self._update_leadership_cache = update_leadership_cache

    async def process(
        self, request: AlterIsrRequest, respond: Callable[[AlterIsrResponse], None]
    ) -> None:
        """One AlterIsrReceived event: answered first, then reassignments that it completes. An
        exception, even that a newer controller is there, is the answer to the whole request."""
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

    async def _alter(self, request: AlterIsrRequest) -> dict[TopicPartition, AlteredIsr]:
        asked = table_order(request.partitions, lambda p: topic_partition_hash(*p.partition))
        answers: dict[TopicPartition, AlteredIsr] = {}
        writes: dict[TopicPartition, LeaderAndIsr] = {}
        for one in asked:
            wanted = LeaderAndIsr(
                request.broker, one.leader_epoch, one.new_isr, one.current_isr_version
            )
            decided = self._decide(one.partition, wanted, request.version)
            if decided is None and self._names_a_former_life(one):
                decided = Errors.INELIGIBLE_REPLICA
            if decided is None:
                writes[one.partition] = wanted
            else:
                answers[one.partition] = _answer(one.partition, decided)
        answers |= await self._write(writes)
        await self._host.kernel.checkpoint("controller_event")
        for one in asked:
            self._emit_decided(request.broker, one, answers[one.partition])
        written = [p for p in writes if answers[p].error is Errors.NONE]
        if written:
            await self._update_leadership_cache(written, "AlterIsr")
        everybody = self._context.live_or_shutting_down
        await self._machinery.send_update_metadata(everybody, [p.partition for p in asked])
        return answers

    def _decide(
        self, partition: TopicPartition, wanted: LeaderAndIsr, request_version: int
    ) -> Errors | LeaderAndIsr | None:
        cached = self._context.leadership.get(partition)
        return validate(
            wanted,
            None if cached is None else cached.leader_and_isr,
            self._context.live,
            request_version,
            self._host.guards,
        )

    def _names_a_former_life(self, asked: AlterIsrPartition) -> bool:
        """A member's fetches were those of a process that is gone (KIP-903)."""
        live = self._context.live_brokers
        return any(
            epoch >= 0 and (member not in live or live[member][1] != epoch)
            for member, epoch in zip(asked.new_isr, asked.member_epochs, strict=False)
        )

    async def _write(
        self, writes: dict[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, AlteredIsr]:
        """One fenced conditional write each; no second try."""
        if not writes:
            return {}
        written = await self._machinery.zk_client.update_leader_and_isr(
            writes, self._context.epoch, self._context.epoch_zk_version
        )
        answers = {
            p: _answer(p, Errors.UNKNOWN_SERVER_ERROR if isinstance(r, ZooKeeperError) else r)
            for p, r in written.finished.items()
        }
        stale = {p: _answer(p, Errors.INVALID_UPDATE_VERSION) for p in written.to_retry}
        return answers | stale

    def _emit_decided(self, sender: int, asked: AlterIsrPartition, answer: AlteredIsr) -> None:
        self._host.emit(
            events.AlterIsrDecided,
            asked.partition,
            sender,
            asked.new_isr,
            answer.error.name,
            answer.leader_epoch,
            answer.isr,
            answer.zk_version,
        )


def _answer(partition: TopicPartition, decided: Errors | LeaderAndIsr) -> AlteredIsr:
    if isinstance(decided, Errors):
        return AlteredIsr(partition, decided)
    return AlteredIsr(
        partition,
        Errors.NONE,
        decided.leader,
        decided.leader_epoch,
        decided.isr,
        decided.zk_version,
    )
