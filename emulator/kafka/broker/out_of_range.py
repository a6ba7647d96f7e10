"""The handling of OFFSET_OUT_OF_RANGE: a follower's log ends before the leader's start, or after
its end.

Owns the next fetch offset, and whether the log may be truncated for it: from 0.8.2 to 2.0.0, where
unclean elections are forbidden, a broker halts rather than lose records. Knows no thread and no
connection. Source: server/ReplicaFetcherThread.scala@0.8.2.2, @1.0.2 handleOffsetOutOfRange, spec
§5.5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.partition import Partition
from emulator.kafka.model.config import unclean_election
from emulator.kafka.profiles.guards.following import LOG_IN_RANGE_KEPT, OUT_OF_RANGE_NOT_FATAL
from emulator.kernel.sync import Promise
from zk.client.kafka_zk_client import KafkaZkClient


class NextFetch(NamedTuple):
    """The next fetch offset, and its lag behind the leader's log end."""

    offset: int
    lag: int


class ListOffset(Protocol):
    """Gets the leader's log start or log end."""

    def __call__(self, *, earliest: bool) -> Awaitable[int]: ...


class OutOfRange:
    """One broker's handling of OFFSET_OUT_OF_RANGE."""

    def __init__(
        self, context: BrokerContext, zk_client: KafkaZkClient, halt: Callable[[str], None]
    ) -> None:
        """`halt` ends the process at once."""
        self._context, self._zk_client, self._halt = context, zk_client, halt
        self._keeps = LOG_IN_RANGE_KEPT in context.guards

    async def next_fetch(self, hosted: Partition, list_offset: ListOffset) -> NextFetch:
        """Adjust the log to the leader's (fetchOffsetAndTruncate)."""
        log = hosted.log
        assert log is not None
        end = await list_offset(earliest=False)
        if end < log.log_end_offset:
            # The leader's log is shorter: an unclean election has lost records that this log still
            # has.
            if OUT_OF_RANGE_NOT_FATAL not in self._context.guards:
                # Read from ZooKeeper each time: this broker's copy of the topic's configuration may
                # be old.
                config = await self._zk_client.get_entity_configs("topics", hosted.partition.topic)
                default = self._context.config.unclean_leader_election_enable
                if not unclean_election(config, default=default):
                    self._halt(
                        f"{hosted.partition}: truncation to the leader's {end} is not allowed"
                    )
                    # The process has ended: this thread must not continue.
                    await Promise[None](self._context.kernel).wait()
            hosted.truncate_to(end)
            return NextFetch(end, 0)
        # The leader has deleted the next records: the log would have a gap.
        start = await list_offset(earliest=True)
        if start > log.log_end_offset or not self._keeps:
            hosted.truncate_fully_and_start_at(start)
        offset = max(log.log_end_offset, start)
        return NextFetch(offset, end - offset)
