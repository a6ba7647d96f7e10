"""Values that events carry: partitions, partition states, requests on the wire.

Small and frozen, without behaviour; TopicPartition is the one that `zk.client.codec` decodes.
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
"""Of a broker: it boots; it serves; nothing of it runs (SIGSTOP); it shuts down in an orderly way;
it is gone."""


class Lagging(NamedTuple):
    """A follower that a shrink removes: its LEO, and how long ago it was caught up."""

    replica: int
    leo: int
    not_caught_up_ms: int


class Offset(NamedTuple):
    """A partition and an offset in it."""

    partition: TopicPartition
    offset: int


class EpochRun(NamedTuple):
    """Records of one leader epoch, from `base_offset` on."""

    leader_epoch: int
    base_offset: int


class Parameters(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What an action says beside its name and its broker: the closed vocabulary of all of them.
    What does not belong to it, or was left to its default, is not there."""

    topic: str = ""
    """The topic that is made, changed, written to or read."""
    assignment: tuple[tuple[int, ...], ...] = ()
    """The replicas of each new partition."""
    partition: int | None = None
    """The partition that is reassigned."""
    replicas: tuple[int, ...] | None = None
    """Its new replicas (none: the reassignment is cancelled)."""
    partitions: tuple[int | tuple[str, int], ...] | None = None
    """The topic's partitions that a client uses; or the partitions to be elected for."""
    through: str = ""
    """`api` or `znode`: how a command comes to the controller."""
    config: dict[str, str] | None = None
    """Settings of the topic or the broker."""
    num_partitions: int | None = None
    """How many, where no assignment says it."""
    replication_factor: int | None = None
    """Replicas of each, where no assignment says it."""
    rate: float | None = None
    """Records a second."""
    records: int | None = None
    """Records in all."""
    acks: str = ""
    """The producer's `acks`."""
    record_bytes: int | None = None
    """Size of a record."""
    batch: int | None = None
    """Records in a batch."""
    client: dict[str, int | str] | None = None
    """Settings of the client."""
    at: str = ""
    """The kind of place where something is held."""
    of: str = ""
    """What is held there: a request, an operation, a checkpoint."""
    which: str = ""
    """How its own name begins: a path, an event."""
    server: str = ""
    """`zookeeper`, or one server of the ensemble."""
    peer: int | str | None = None
    """The other end of a link: a broker, or `zookeeper`."""
    thread: str = ""
    """The thread that is held."""
    when: str = ""
    """`before` or `after`: a connection breaks before or after the request is applied."""
    request: str = ""
    """The kind of request between brokers at which a connection breaks."""
    late_ms: int | None = None
    """How much later the broken connection is noticed, in milliseconds."""
    op: str = ""
    """The ZooKeeper operation at which a connection breaks."""
    fault: str = ""
    """What a disk does: `error`, `full`, `short_writes`, `bit_flip` or `bad_sector`."""
    call: str = ""
    """The calls to the file system that fail (none: any)."""
    count: int | None = None
    """How many connections break, or calls fail; or how many partitions the topic has then."""
    delay_ms: int | None = None
    """What is added to every message."""
    low_ms: int | None = None
    """A link's latency: at least."""
    typical_ms: int | None = None
    """A link's latency: mostly."""
    high_ms: int | None = None
    """A link's latency: at most."""
    loss: float | None = None
    """The share of messages that is lost."""
    bytes_per_s: int | None = None
    """The bandwidth of a link or a follower; 0: no limit."""
    ways: str = ""
    """Which directions of a link: `both`, `to_peer` or `from_peer`."""
    ms_per_append: int | None = None
    """How long the disk takes for an append."""
    free_bytes: int | None = None
    """What a full disk has left."""
    directory: int | None = None
    """The log directory, by its place."""
    lose: str = ""
    """What a crash takes with it: `unflushed` or `disk`."""
    registered_ms: int | None = None
    """How long after its start the broker is registered."""
    if_down: bool = False
    """Only a broker that does not run is started."""
    profile: str = ""
    """The version that the new process runs."""
    propagation: str = ""
    """How its leaders tell the controller of ISR changes: `zk` or `rpc`."""

    @property
    def text(self) -> str:
        """As one JSON object, for readers of the data set."""
        return msgspec.json.encode(self).decode()


class PartitionState(msgspec.Struct, frozen=True, gc=False):
    """One partition in a LeaderAndIsr or UpdateMetadata request, and in a metadata cache.

    `controller_epoch` is the deciding one, from the state znode. `zk_version` is the znode's data
    version.
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
    """One operation inside a multi as it was sent."""

    op: str
    path: str
    version: int | None = None
    flags: str | None = None


class LoggedOp(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One operation inside a logged multi, as the server's transaction log has it."""

    op: str
    path: str | None = None
    data: str | None = None
    version: int | None = None
    ephemeral: bool = False
    code: int | None = None
