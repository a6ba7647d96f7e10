"""A leader's ISR changes: which followers join, which leave, and the result of each change.

Applies the rules of `replica` and the states of `isr_state`, each step under the lock that Kafka
holds there. `isr_store` makes a change durable, either within the call or with a later response.
Knows no fetch, no request, no other partition. Source: cluster/Partition.scala@2.6.3
maybeExpandIsr, maybeShrinkIsr, @2.7.2 sendAlterIsrRequest, handleAlterIsrResponse; spec §3.3, §3.4,
§7.1, §7.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.isr_order import IsrOrder
from emulator.kafka.broker.isr_state import (
    CommittedIsr,
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
    ZkIsrManager,
    ZkIsrStore,
)
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.partition_ports import LeaderPartition
from emulator.kafka.broker.replica import Replica, Rules
from emulator.kafka.model.errors import Errors, IllegalState, KafkaError
from emulator.kafka.profiles.guards.alter_isr import (
    HW_AFTER_ALTER_ISR,
    KEEP_IN_FLIGHT,
    LIVE_MEMBERS_PROPOSED,
    MEMBER_EPOCHS,
)
from emulator.kafka.profiles.guards.isr import ISR_CHECK_UNDER_READ_LOCK
from emulator.trace import events
from emulator.trace.values import Lagging
from zk.client.codec import LeaderAndIsr
from zk.client.kafka_zk_client import Updated


class LeaderIsr:
    """The ISR changes of one partition."""

    def __init__(
        self,
        context: BrokerContext,
        hosted: LeaderPartition,
        store: IsrStore,
        rules: Rules,
        metadata_cache: MetadataCache,
    ) -> None:
        self._context, self._hosted, self._store, self._rules = context, hosted, store, rules
        self._metadata_cache = metadata_cache
        self._proposes_live_only = LIVE_MEMBERS_PROPOSED in context.guards
        self._checks_under_read_lock = ISR_CHECK_UNDER_READ_LOCK in context.guards
        self._order = IsrOrder(context.profile, hosted.partition)

    def committed(self, isr: Sequence[int]) -> CommittedIsr:
        """The state for an ISR from a request or a response: a new Set."""
        return CommittedIsr(*self._order.set_of(isr))

    def _proposed(self, proposed: PendingIsr) -> CommittedIsr:
        """The state after `proposed`: the Set that Kafka derives from the current one."""
        return CommittedIsr(*self._order.set_of(proposed.proposed, is_trie=proposed.is_trie))

    # -- joining -----------------------------------------------------------------------------------

    async def maybe_expand(self, replica: Replica) -> None:
        """Add a follower that has caught up (maybeExpandIsr)."""
        hosted = self._hosted
        # Checked without the lock; the check under the lock below sees later changes.
        if hosted.isr_state.is_inflight:
            return
        if self._checks_under_read_lock:
            # KAFKA-7538, 2.5: nearly every fetch of a follower outside the ISR ends here, without
            # waiting for a leader that writes to ZooKeeper under the write lock.
            await hosted.lock.pass_read()
            if not self._needs_expand(replica):
                return
        to_submit = None
        async with hosted.writing():
            # Between the two locks the role, the ISR or the assignment may have changed.
            if self._needs_expand(replica):
                is_trie = hosted.isr_state.is_trie
                change = PendingExpandIsr(hosted.isr, replica.broker, is_trie)
                to_submit = await self._change(change)
        await self._submit(to_submit)

    def _needs_expand(self, replica: Replica) -> bool:
        hosted = self._hosted
        log = hosted.leader_log
        return (
            log is not None
            # A later LeaderAndIsr may have replaced the object during the wait.
            and hosted.remotes.get(replica.broker) is replica
            and may_expand(
                hosted.isr_state,
                replica,
                log.high_watermark,
                hosted.leader_epoch_start_offset,
                self._rules,
            )
            and (not self._proposes_live_only or self._is_alive(replica.broker))
        )

    def _is_alive(self, broker: int) -> bool:
        """As far as this broker's metadata knows (isReplicaIsrEligible)."""
        return self._metadata_cache.alive_broker(broker) is not None

    # -- leaving -----------------------------------------------------------------------------------

    async def maybe_shrink(self) -> None:
        """Remove the members that are out of sync (maybeShrinkIsr)."""
        hosted = self._hosted
        if hosted.isr_state.is_inflight:
            return
        if self._checks_under_read_lock:
            await hosted.lock.pass_read()
            if not self._out_of_sync_replicas():
                return
        hw_incremented, to_submit = False, None
        async with hosted.writing():
            # The clock is read again too: a follower that fetched during the wait stays.
            out_of_sync = self._out_of_sync_replicas()
            if out_of_sync:
                is_trie = hosted.isr_state.is_trie
                change = PendingShrinkIsr(hosted.isr, out_of_sync, is_trie)
                to_submit = await self._change(change)
                # A removed member may have held back the high watermark; and if only the leader
                # remains, no fetch will raise it.
                hw_incremented = hosted.maybe_increment_leader_hw(self._context.now_ms())
        await self._submit(to_submit)
        # Outside the lock: a completed fetch takes the read locks of its other partitions.
        if hw_incremented:
            await hosted.complete_all_delayed()
            await self._context.kernel.checkpoint("requests_completed")

    def _out_of_sync_replicas(self) -> tuple[int, ...]:
        hosted = self._hosted
        log = hosted.leader_log
        if log is None or hosted.isr_state.is_inflight:
            return ()
        if not self._rules.stay_at_log_end:
            # Only the time of the last fetch counts: idle fetches have to report theirs first.
            hosted.wake()
        return out_of_sync_replicas(
            hosted.isr_state,
            self._context.broker,
            self._get_replica_or_error,
            log.log_end_offset,
            self._context.now_ms(),
            self._context.config.replica_lag_time_max_ms,
            self._rules,
        )

    def _get_replica_or_error(self, broker: int) -> Replica:
        """During a reassignment that removes replicas an ISR member may no longer be a replica. The
        run of isr-expiration then fails (getReplicaOrException; KAFKA-9672)."""
        replica = self._hosted.remotes.get(broker)
        if replica is None:
            raise KafkaError(Errors.REPLICA_NOT_AVAILABLE, f"{self._hosted.partition} at {broker}")
        return replica

    # -- the change --------------------------------------------------------------------------------

    async def _change(self, proposed: PendingIsr) -> AlterIsrItem | None:
        """Make the change durable; the write lock is held. Returns what is to be submitted without
        it."""
        hosted, now_ms = self._hosted, self._context.now_ms()
        log = hosted.leader_log
        assert log is not None and hosted.lock.write_owner is self._context.kernel.current
        out_of_sync = proposed.out_of_sync if isinstance(proposed, PendingShrinkIsr) else ()
        self._context.emit(
            events.IsrUpdateStarted,
            hosted.partition,
            proposed.change,
            proposed.isr,
            self._proposed(proposed).isr,
            log.high_watermark,
            log.log_end_offset,
            hosted.leader_epoch,
            hosted.zk_version,
            tuple(
                Lagging(b, replica.log_end_offset, now_ms - replica.last_caught_up_time_ms)
                for b, replica in ((b, hosted.remotes[b]) for b in out_of_sync)
            ),
        )
        if not isinstance(self._store, ZkIsrStore):
            return await self._propose(proposed, self._store)
        # expandIsrWithZk, shrinkIsrWithZk hold the write lock during the call: fetches and appends
        # of this partition wait as long as ZooKeeper takes.
        await self._context.kernel.checkpoint("write_isr")
        result = await self._store.update(
            hosted.partition, self._leader_and_isr(proposed), hosted.controller_epoch
        )
        if isinstance(result, Updated):
            # Only now. Until ZooKeeper has the change, a removed member is still waited for, and an
            # added one is not counted (H14: a leader must not drop a member from memory earlier).
            hosted.isr_state, hosted.zk_version = self._proposed(proposed), result.zk_version
            self._emit_updated(proposed)
        else:
            # The version is not read again: every change by this leader is rejected until the next
            # LeaderAndIsr (KAFKA-2729).
            self._context.emit(
                events.IsrUpdateRejected, hosted.partition, proposed.change, hosted.zk_version
            )
        return None

    def _leader_and_isr(self, proposed: PendingIsr) -> LeaderAndIsr:
        hosted = self._hosted
        return LeaderAndIsr(
            self._context.broker,
            hosted.leader_epoch,
            self._proposed(proposed).isr,
            hosted.zk_version,
        )

    def _emit_updated(self, proposed: PendingIsr) -> None:
        hosted = self._hosted
        self._context.emit(
            events.IsrUpdated,
            hosted.partition,
            proposed.change,
            hosted.isr,
            hosted.zk_version,
            hosted.leader_epoch,
        )

    # -- the answer that comes later ---------------------------------------------------------------

    async def _propose(self, proposed: PendingIsr, manager: AlterIsrManager) -> AlterIsrItem | None:
        """Submit the proposal; the state is pending from then on (sendAlterIsrRequest). Returns
        what is to be submitted when the lock is released."""
        context, hosted = self._context, self._hosted
        await context.kernel.checkpoint("propose_isr")
        member_epochs: tuple[int, ...] = ()
        if MEMBER_EPOCHS in context.guards:
            # The broker epochs of the members' last fetches (KIP-903).
            epochs = {**context.follower_epochs, context.broker: context.broker_epoch}
            member_epochs = tuple(epochs.get(b, -1) for b in self._proposed(proposed).isr)
        item = AlterIsrItem(
            hosted.partition,
            self._leader_and_isr(proposed),
            partial(self._handle_alter_isr_response, proposed, manager),
            hosted.controller_epoch,
            member_epochs,
        )
        if not manager.enqueue(item):
            # The manager still has an earlier item of this partition.
            error = Errors.OPERATION_NOT_ATTEMPTED
            if KEEP_IN_FLIGHT in context.guards:
                # The next fetch, or the next run of isr-expiration, proposes it again.
                hosted.isr_state = CommittedIsr(proposed.isr, proposed.is_trie)
                self._emit_failed(proposed, error, Outcome.ROLLED_BACK)
                return None
            # Kafka raises an exception, which fails the request or the run of isr-expiration. In a
            # callback it leaves the partition pending forever (KAFKA-14010).
            self._emit_failed(proposed, error, Outcome.STAYS_PENDING)
            raise IllegalState(f"an AlterIsr of {hosted.partition} is enqueued already")
        hosted.isr_state = proposed
        context.emit(
            events.AlterIsrProposed,
            hosted.partition,
            self._proposed(proposed).isr,
            hosted.leader_epoch,
            hosted.zk_version,
            type(proposed).__name__,
        )
        # Only now: ZkIsrManager calls back before it returns and must find the state pending. From
        # 3.1 on it writes without the lock, since its callback completes requests, which takes the
        # locks of other partitions (Partition.scala@3.3.2 maybeExpandIsr, submitAlterPartition).
        if isinstance(manager, ZkIsrManager) and HW_AFTER_ALTER_ISR in context.guards:
            return item
        await manager.propagate(item)
        return None

    async def _submit(self, item: AlterIsrItem | None) -> None:
        if item is not None:
            assert not isinstance(self._store, ZkIsrStore)
            await self._store.propagate(item)

    async def _handle_alter_isr_response(
        self, proposed: PendingIsr, manager: AlterIsrManager, answer: Answer
    ) -> None:
        hosted, guards = self._hosted, self._context.guards
        hw_incremented, to_submit = False, None
        # A LeaderAndIsr may have replaced the proposal before this response arrived, or during the
        # wait for the lock: `take_answer` compares the state with the proposed one.
        async with hosted.writing():
            result = take_answer(
                hosted.isr_state, proposed, hosted.leader_epoch, hosted.zk_version, answer, guards
            )
            if result.outcome is not Outcome.IGNORED:
                hosted.isr_state, hosted.zk_version = result.state, result.zk_version
            if result.outcome is Outcome.COMMITTED:
                # A new Set from the response's list: its order may differ from the proposal's.
                hosted.isr_state = self.committed(hosted.isr)
                self._emit_updated(proposed)
                if HW_AFTER_ALTER_ISR in guards:
                    # A committed shrink may raise the high watermark. Without this check acks=all
                    # waits for the next append or fetch (H18).
                    hw_incremented = hosted.maybe_increment_leader_hw(self._context.now_ms())
            else:
                self._emit_failed(proposed, answer, result.outcome)
                if result.outcome is Outcome.RESUBMITTED:
                    to_submit = await self._propose(proposed, manager)
        await self._submit(to_submit)
        if hw_incremented:
            await hosted.complete_all_delayed()

    def _emit_failed(self, proposed: PendingIsr, answer: Answer, outcome: Outcome) -> None:
        error = answer if isinstance(answer, Errors) else Errors.NONE
        self._context.emit(
            events.AlterIsrFailed,
            self._hosted.partition,
            proposed.change,
            error.name,
            outcome.value,
            self._hosted.zk_version,
        )
