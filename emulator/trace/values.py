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
