"""Values that events carry: partitions, partition states, requests on the wire.

Small frozen structs without behaviour. TopicPartition is the type that `zk.client.codec` decodes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from zk.client.codec import TopicPartition

__all__ = [
    "EpochRun",
    "Lagging",
    "LoggedOp",
    "Offset",
    "Parameters",
    "PartitionState",
    "ProcessState",
    "TopicPartition",
    "WireOp",
]


ProcessState = Literal["starting", "up", "paused", "stopping", "dead"]
"""The state of a broker's process: starting, serving, suspended (SIGSTOP), in an orderly shutdown,
or gone."""


class Lagging(NamedTuple):
    """A follower that a shrink removes: its LEO, and how long ago it was caught up."""

    replica: int
    leo: int
    not_caught_up_ms: int


class Offset(NamedTuple):
    partition: TopicPartition
    offset: int


class EpochRun(NamedTuple):
    """Records of one leader epoch, from `base_offset` on."""

    leader_epoch: int
    base_offset: int


class Parameters(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The parameters of all actions; a closed vocabulary. Those that an action does not have, or
    left at the default, are absent."""

    topic: str = ""
    """The topic to create, change, write to or read."""
    assignment: tuple[tuple[int, ...], ...] = ()
    """The replicas of each new partition."""
    partition: int | None = None
    """The partition to reassign."""
    replicas: tuple[int, ...] | None = None
    """The new replicas (empty: cancel the reassignment)."""
    partitions: tuple[int | tuple[str, int], ...] | None = None
    """The partitions that a client uses, or for which to elect a leader."""
    before: int | None = None
    """The offset before which records are deleted (empty: the high watermark)."""
    through: str = ""
    """How a command reaches the controller: `api` or `znode`."""
    config: dict[str, str] | None = None
    """Settings of the topic or the broker."""
    num_partitions: int | None = None
    """The number of partitions, if there is no assignment."""
    replication_factor: int | None = None
    """Replicas per partition, if there is no assignment."""
    rate: float | None = None
    """Records per second."""
    records: int | None = None
    """The total number of records."""
    acks: str = ""
    record_bytes: int | None = None
    batch: int | None = None
    client: dict[str, int | str] | None = None
    rack: str = ""
    """The rack of a consumer."""
    at: str = ""
    """The kind of hold point."""
    of: str = ""
    """The operation or the request kind to hold, or the checkpoint."""
    which: str = ""
    """A prefix of its name: a path, an event."""
    server: str = ""
    """`zookeeper`, or one server of the ensemble."""
    peer: int | str | None = None
    """The other end of a link: a broker or `zookeeper`."""
    thread: str = ""
    """The thread to hold."""
    when: str = ""
    """Whether a connection breaks `before` or `after` the request is applied."""
    request: str = ""
    """The kind of inter-broker request at which a connection breaks."""
    late_ms: int | None = None
    """How much later the broken connection is noticed, in milliseconds."""
    op: str = ""
    """The ZooKeeper operation at which a connection breaks."""
    fault: str = ""
    """The fault of a disk: `error`, `full`, `short_writes`, `bit_flip` or `bad_sector`."""
    call: str = ""
    """The file system calls that fail (empty: any)."""
    count: int | None = None
    """The number of connections that break or calls that fail, or the topic's new number of
    partitions."""
    delay_ms: int | None = None
    """The delay added to every message."""
    low_ms: int | None = None
    """A link's minimum latency."""
    typical_ms: int | None = None
    """A link's typical latency."""
    high_ms: int | None = None
    """A link's maximum latency."""
    loss: float | None = None
    """The fraction of messages lost."""
    bytes_per_s: int | None = None
    """The bandwidth of a link or a follower; 0: unlimited."""
    ways: str = ""
    """The affected directions of a link: `both`, `to_peer` or `from_peer`."""
    ms_per_append: int | None = None
    """How long each append takes on the disk."""
    offset_ms: int | None = None
    """How far a wall clock is ahead of the machine's (negative: behind), in milliseconds."""
    free_bytes: int | None = None
    """The free space left on a full disk."""
    directory: int | None = None
    """The index of the log directory."""
    lose: str = ""
    """What a crash destroys: `unflushed` or `disk`."""
    registered_ms: int | None = None
    """When to create the broker's registration, in milliseconds since the cluster was up."""
    if_down: bool = False
    """Start the broker only if it is not running."""
    profile: str = ""
    """The Kafka version of the new process."""
    propagation: str = ""
    """How its leaders report ISR changes to the controller: `zk` or `rpc`."""

    @property
    def text(self) -> str:
        """One JSON object, for readers of the data set."""
        return msgspec.json.encode(self).decode()


class PartitionState(msgspec.Struct, frozen=True, gc=False):
    """One partition in a LeaderAndIsr or UpdateMetadata request, and in a metadata cache.

    `controller_epoch` is that of the controller that decided, from the state znode. `zk_version` is
    the znode's data version.
    """

    partition: TopicPartition
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_new: bool = False
    offline_replicas: tuple[int, ...] = ()


class WireOp(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One operation of a multi as it was sent."""

    op: str
    path: str
    version: int | None = None
    flags: str | None = None


class LoggedOp(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One operation of a multi in the server's transaction log."""

    op: str
    path: str | None = None
    data: str | None = None
    version: int | None = None
    ephemeral: bool = False
    code: int | None = None
