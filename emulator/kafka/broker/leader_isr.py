"""What a leader does about its ISR: who joins, who leaves, and what comes of it.

Drives the rules in `replica` and the states in `isr_state`, each step under the lock that Kafka
holds there; `isr_store` makes a change durable, inside the call or with an answer later. Knows no
fetch, no request, no other partition. Source: cluster/Partition.scala@2.6.3 maybeExpandIsr,
maybeShrinkIsr, @2.7.2 sendAlterIsrRequest, handleAlterIsrResponse; spec §3.3, §3.4, §7.1, §7.5.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.isr_state import (
    CommittedIsr,
    IsrState,
    Outcome,
    PendingExpandIsr,
    PendingIsr,
    PendingShrinkIsr,
    may_expand,
    out_of_sync_replicas,
    take_answer,
)
from emulator.kafka.broker.isr_store import (
    AlterIsrItem,
    AlterIsrManager,
    Answer,
    IsrStore,
    ZkIsrStore,
)
from emulator.kafka.broker.replica import Replica, Rules
from emulator.kafka.model.errors import Errors, IllegalState, KafkaError
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kafka.profiles.guards.alter_isr import (
    HW_AFTER_ALTER_ISR,
    KEEP_IN_FLIGHT,
    MEMBER_EPOCHS,
)
from emulator.kafka.profiles.guards.isr import ISR_CHECK_UNDER_READ_LOCK
from emulator.kernel.sync import RwLock
from emulator.trace import events
from emulator.trace.values import Lagging, TopicPartition
from zk.client.codec import LeaderAndIsr
from zk.client.kafka_zk_client import Updated


class Led(Protocol):
    """The partition, as far as its ISR concerns it."""

    partition: TopicPartition
    lock: RwLock
    remotes: dict[int, Replica]
    zk_version: int
    leader_epoch: int
    leader_epoch_start_offset: int | None
    controller_epoch: int
    isr: tuple[int, ...]

    @property
    def isr_state(self) -> IsrState: ...

    @isr_state.setter
    def isr_state(self, state: IsrState) -> None: ...

    @property
    def leader_log(self) -> OffsetLog | None: ...

    async def lock_for_writing(self) -> None: ...

    def stir_for_time(self) -> None: ...

    def maybe_increment_leader_hw(self, now_ms: int) -> bool: ...

    async def complete_all_delayed(self) -> None: ...


class LeaderIsr:
    """The changes of one partition's ISR."""

    def __init__(self, context: BrokerContext, led: Led, store: IsrStore, rules: Rules) -> None:
        self._context, self._led, self._store, self._rules = context, led, store, rules
        self._looks_under_read_lock = ISR_CHECK_UNDER_READ_LOCK in context.guards

    # -- joining -----------------------------------------------------------------------------------

    async def maybe_expand(self, replica: Replica) -> None:
        """Check under the read lock, again under the write lock, and change (KAFKA-7538); before
        2.5 under the write lock at once."""
        led = self._led
        if led.isr_state.is_inflight:
            return
        if self._looks_under_read_lock:
            await led.lock.pass_read()
            if not self._needs_expand(replica):
                return
        await led.lock_for_writing()
        try:
            if self._needs_expand(replica):
                await self._change(PendingExpandIsr(led.isr, replica.broker))
        finally:
            led.lock.release_write()

    def _needs_expand(self, replica: Replica) -> bool:
        led = self._led
        log = led.leader_log
        return (
            log is not None
            and led.remotes.get(replica.broker) is replica
            and may_expand(
                led.isr_state,
                replica,
                log.high_watermark,
                led.leader_epoch_start_offset,
                self._rules,
            )
        )

    # -- leaving -----------------------------------------------------------------------------------

    async def maybe_shrink(self) -> None:
        """Remove who is out of sync: check under the read lock, again under the write lock, and
        change; the high watermark may go up, since the ISR may be down to one."""
        led = self._led
        if led.isr_state.is_inflight:
            return
        if self._looks_under_read_lock:
            await led.lock.pass_read()
            if not self._out_of_sync_replicas():
                return
        await led.lock_for_writing()
        try:
            hw_incremented = await self._shrink()
        finally:
            led.lock.release_write()
        if hw_incremented:
            await led.complete_all_delayed()

    async def _shrink(self) -> bool:
        out_of_sync = self._out_of_sync_replicas()
        if not out_of_sync:
            return False
        await self._change(PendingShrinkIsr(self._led.isr, out_of_sync))
        return self._led.maybe_increment_leader_hw(self._context.now_ms())

    def _out_of_sync_replicas(self) -> tuple[int, ...]:
        led = self._led
        log = led.leader_log
        if log is None or led.isr_state.is_inflight:
            return ()
        led.stir_for_time()
        now_ms, max_lag_ms = self._context.now_ms(), self._context.config.replica_lag_time_max_ms
        return out_of_sync_replicas(
            led.isr_state,
            self._context.broker,
            self._replica_or_error,
            log.log_end_offset,
            now_ms,
            max_lag_ms,
            self._rules,
        )

    def _replica_or_error(self, broker: int) -> Replica:
        """A member of the ISR may be no replica any more, while a reassignment shrinks: the look at
        the ISR fails then (getReplicaOrException; KAFKA-9672)."""
        replica = self._led.remotes.get(broker)
        if replica is None:
            raise KafkaError(Errors.REPLICA_NOT_AVAILABLE, f"{self._led.partition} at {broker}")
        return replica

    # -- the change --------------------------------------------------------------------------------

    async def _change(self, proposed: PendingIsr) -> None:
        """The leader has decided; the write lock is held."""
        self._emit_started(proposed)
        if isinstance(self._store, ZkIsrStore):
            await self._write(proposed, self._store)
        else:
            await self._propose(proposed, self._store)

    def _emit_started(self, proposed: PendingIsr) -> None:
        led, now_ms = self._led, self._context.now_ms()
        log = led.leader_log
        assert log is not None and led.lock.write_owner is self._context.kernel.current
        leaving = proposed.out_of_sync if isinstance(proposed, PendingShrinkIsr) else ()
        self._context.emit(
            events.IsrUpdateStarted,
            led.partition,
            proposed.change,
            proposed.isr,
            proposed.proposed,
            log.high_watermark,
            log.log_end_offset,
            led.leader_epoch,
            led.zk_version,
            tuple(self._lagging(b, now_ms) for b in leaving),
        )

    def _lagging(self, broker: int, now_ms: int) -> Lagging:
        replica = self._led.remotes[broker]
        return Lagging(broker, replica.log_end_offset, now_ms - replica.last_caught_up_time_ms)

    def _wanted(self, proposed: PendingIsr) -> LeaderAndIsr:
        led = self._led
        return LeaderAndIsr(
            self._context.broker, led.leader_epoch, proposed.proposed, led.zk_version
        )

    async def _write(self, proposed: PendingIsr, store: ZkIsrStore) -> None:
        """Write the ISR at the cached version; a rejected write leaves everything as it was
        (expandIsrWithZk, shrinkIsrWithZk). The write lock is held across the call to ZooKeeper."""
        led, state = self._led, self._wanted(proposed)
        result = await store.update(led.partition, state, led.controller_epoch)
        if isinstance(result, Updated):
            led.isr_state, led.zk_version = CommittedIsr(proposed.proposed), result.zk_version
            self._emit_updated(proposed)
        else:
            self._emit_rejected(proposed)

    def _emit_updated(self, proposed: PendingIsr) -> None:
        led = self._led
        self._context.emit(
            events.IsrUpdated,
            led.partition,
            proposed.change,
            led.isr,
            led.zk_version,
            led.leader_epoch,
        )

    def _emit_rejected(self, proposed: PendingIsr) -> None:
        led = self._led
        self._context.emit(events.IsrUpdateRejected, led.partition, proposed.change, led.zk_version)

    def _member_epochs(self, members: tuple[int, ...]) -> tuple[int, ...]:
        """Those that the members' last fetches came with (KIP-903)."""
        context = self._context
        if MEMBER_EPOCHS not in context.guards:
            return ()
        known = {**context.follower_epochs, context.broker: context.broker_epoch}
        return tuple(known.get(member, -1) for member in members)

    # -- the answer that comes later ---------------------------------------------------------------

    async def _propose(self, proposed: PendingIsr, manager: AlterIsrManager) -> None:
        """Pending from now on (sendAlterIsrRequest): the call-back may come before `propagate`
        returns."""
        led = self._led
        await self._context.kernel.checkpoint("propose_isr")
        item = AlterIsrItem(
            led.partition,
            self._wanted(proposed),
            partial(self._answered, proposed, manager),
            led.controller_epoch,
            self._member_epochs(proposed.proposed),
        )
        if not manager.enqueue(item):
            self._refused(proposed)
            return
        led.isr_state = proposed
        self._context.emit(
            events.AlterIsrProposed,
            led.partition,
            proposed.proposed,
            led.leader_epoch,
            led.zk_version,
            type(proposed).__name__,
        )
        await manager.propagate(item)

    def _refused(self, proposed: PendingIsr) -> None:
        """The manager still has another item of this partition: the state stays as it is, and the
        thread fails; where items in flight are kept, nothing is pending any more."""
        led, error = self._led, Errors.OPERATION_NOT_ATTEMPTED
        if KEEP_IN_FLIGHT in self._context.guards:
            led.isr_state = CommittedIsr(proposed.isr)
            self._emit_failed(proposed, error, Outcome.ROLLED_BACK)
            return
        self._emit_failed(proposed, error, Outcome.STAYS_PENDING)
        raise IllegalState(f"an AlterIsr of {led.partition} is enqueued already")

    async def _answered(
        self, proposed: PendingIsr, manager: AlterIsrManager, answer: Answer
    ) -> None:
        """What became of a proposal (handleAlterIsrResponse)."""
        led = self._led
        await led.lock_for_writing()
        try:
            hw_incremented = await self._take(proposed, manager, answer)
        finally:
            led.lock.release_write()
        if hw_incremented:
            await led.complete_all_delayed()

    async def _take(self, proposed: PendingIsr, manager: AlterIsrManager, answer: Answer) -> bool:
        """True when the high watermark moved."""
        led, guards = self._led, self._context.guards
        taken = take_answer(
            led.isr_state, proposed, led.leader_epoch, led.zk_version, answer, guards
        )
        if taken.outcome is Outcome.IGNORED:
            self._emit_failed(proposed, answer, taken.outcome)
            return False
        led.isr_state, led.zk_version = taken.state, taken.zk_version
        if taken.outcome is Outcome.COMMITTED:
            self._emit_updated(proposed)
            if HW_AFTER_ALTER_ISR in guards:
                return led.maybe_increment_leader_hw(self._context.now_ms())
            return False
        self._emit_failed(proposed, answer, taken.outcome)
        if taken.outcome is Outcome.RESUBMITTED:
            await self._propose(proposed, manager)
        return False

    def _emit_failed(self, proposed: PendingIsr, answer: Answer, outcome: Outcome) -> None:
        error = answer if isinstance(answer, Errors) else Errors.NONE
        self._context.emit(
            events.AlterIsrFailed,
            self._led.partition,
            proposed.change,
            error.name,
            outcome.value,
            self._led.zk_version,
        )
