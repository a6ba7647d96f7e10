"""The closed vocabulary of events.

Every event has `seq` (its position in the trace), `t` (microseconds since the world began),
`broker` (0: none, a client or the world), `thread` (Kafka's thread name) and `cause` (the `seq` of
the event that caused it, -1: none), in this order. Events record facts: decisions and the numbers
behind them, never interpretations. To add a kind, add a class here and an entry in `AnyEvent`
below. `docs/trace.md` is generated from this file.
"""

from __future__ import annotations

import msgspec

from emulator.trace.event import Event
from emulator.trace.values import (
    EpochRun,
    Lagging,
    LoggedOp,
    Offset,
    Parameters,
    PartitionState,
    ProcessState,
    TopicPartition,
    WireOp,
)

# -- the world -------------------------------------------------------------------------------------


class ActionApplied(Event, frozen=True, gc=False):
    """An action was applied to the cluster from outside: its name (`do`), the `broker` if it
    concerns one, and its parameters."""

    do: str
    parameters: Parameters


class ActionReturned(Event, frozen=True, gc=False):
    """The client of the action `of` (its seq) has received the response: an error name, or
    `NONE`."""

    of: int
    result: str


# -- ZooKeeper -------------------------------------------------------------------------------------


class Parked(Event, frozen=True, gc=False):
    """A hold stopped something until its release. `at`: the kind of place; `of`: a request, an
    operation or a checkpoint; `which`: its path or name; `peer`: its receiver, if it has one. Later
    events have the cause that they would have without the hold."""

    at: str
    of: str
    which: str
    peer: str


class ZkSent(Event, frozen=True, gc=False):
    """A thread of `broker` gives a request to its ZooKeeper client. `detail` is the payload, if it
    is text."""

    op: str
    path: str
    version: int = -1
    detail: str = ""


class ZkReply(Event, frozen=True, gc=False):
    """The thread has the response: ZooKeeper's result `code` (0: OK), and the znode's data
    `version` after the operation (-1: none)."""

    op: str
    path: str
    code: int
    version: int
    elapsed_us: int


class ZkRequest(Event, frozen=True, gc=False):
    """A request of `broker` as it passed on the wire. `op` may also be `connect`, `setWatches`,
    `closeSession`."""

    op: str
    path: str | None = None
    watch: bool | None = None
    version: int | None = None
    flags: str | None = None
    ops: tuple[WireOp, ...] = ()


class ZkTransaction(Event, frozen=True, gc=False):
    """A transaction in ZooKeeper's log; `broker` is the owner of the session (0: no broker)."""

    zxid: int
    op: str
    path: str | None = None
    data: str | None = None
    version: int | None = None
    ephemeral: bool = False
    ops: tuple[LoggedOp, ...] = ()
    code: int | None = None
    timeout_ms: int | None = None
    removed: tuple[str, ...] = ()


class ZkWatchFired(Event, frozen=True, gc=False):
    """A watch of `broker` fired, and the client's event thread has received it."""

    type: str
    path: str


class ZkSessionState(Event, frozen=True, gc=False):
    """The broker's client learned of a new session state."""

    state: str
    session_id: int


class ZnodeMalformed(Event, frozen=True, gc=False):
    """A znode's data violate its format; the reader ignores the field."""

    path: str
    field: str
    problem: str


# -- a broker's process ----------------------------------------------------------------------------


class BrokerStarting(Event, frozen=True, gc=False):
    """The process begins to start, with this Kafka version line."""

    profile: str


class BrokerRegistered(Event, frozen=True, gc=False):
    """`/brokers/ids/<id>` was created; `broker_epoch` is its czxid."""

    broker_epoch: int


class BrokerStarted(Event, frozen=True, gc=False):
    """Start-up is complete. Up to 0.10 the broker's sockets accept requests before this."""


class BrokerExited(Event, frozen=True, gc=False):
    """The process has shut down in an orderly way."""


class BrokerHalted(Event, frozen=True, gc=False):
    """The process ended at once, for this reason (Exit.halt, or a signal that is no action of the
    run); its session runs out."""

    reason: str


class ProcessStateChanged(Event, frozen=True, gc=False):
    """The process of `broker` is now in this `state`: starting, up, paused, stopping or dead; its
    session may live on, or have ended before. A resume leads back to the state before the pause. It
    is never the cause of another event."""

    state: ProcessState


class ThreadFailed(Event, frozen=True, gc=False):
    """A thread of Kafka caught an exception, logged it and continued: what it was doing, and the
    error."""

    what: str
    error: str


# -- replication: the leader -----------------------------------------------------------------------


class RecordsAppended(Event, frozen=True, gc=False):
    """Records went into the log of `broker`: `base_offset` up to (not including) `leo`, `size`
    bytes. `epochs` says which leader epochs a follower copied, where that is not `leader_epoch`."""

    partition: TopicPartition
    role: str
    base_offset: int
    leo: int
    leader_epoch: int
    size: int
    epochs: tuple[EpochRun, ...] = ()


class FollowerStateUpdated(Event, frozen=True, gc=False):
    """The leader records a follower's new fetch offset (`leo`).

    `leader_leo` was captured before the read; `caught_up_ms` is the follower's new
    lastCaughtUpTime.
    """

    partition: TopicPartition
    replica: int
    leo: int
    leader_leo: int
    caught_up_ms: int


class HwAdvanced(Event, frozen=True, gc=False):
    """The high watermark of `broker`'s replica is now `hw` (a follower's may also go down)."""

    partition: TopicPartition
    role: str
    hw: int
    leo: int


class IsrUpdateStarted(Event, frozen=True, gc=False):
    """The leader decided to change the ISR: `change` is `shrink` or `expand`; the write follows.

    `out_of_sync` names who leaves (shrink); `zk_version` is the cached version that the write will
    expect.
    """

    partition: TopicPartition
    change: str
    from_isr: tuple[int, ...]
    to_isr: tuple[int, ...]
    hw: int
    leo: int
    leader_epoch: int
    zk_version: int
    out_of_sync: tuple[Lagging, ...] = ()


class IsrUpdated(Event, frozen=True, gc=False):
    """The new ISR is in ZooKeeper, and the leader uses it."""

    partition: TopicPartition
    change: str
    isr: tuple[int, ...]
    zk_version: int
    leader_epoch: int


class IsrUpdateRejected(Event, frozen=True, gc=False):
    """The leader's cached version is not the version in ZooKeeper, so it keeps its old ISR."""

    partition: TopicPartition
    change: str
    cached_zk_version: int


class ControllerShrinkCounted(Event, frozen=True, gc=False):
    """A leader counts a shrink by the controller in IsrShrinksPerSec when it learns of it
    (KAFKA-2309, in no version)."""

    partition: TopicPartition
    isr: tuple[int, ...]


class IsrChangeHeld(Event, frozen=True, gc=False):
    """A run of the propagation task that has pending changes but sends nothing: the last change was
    `quiet_ms` ago (at least 5,000 are needed), the last propagation `since_propagation_ms` ago
    (60,000 also suffice)."""

    pending: tuple[TopicPartition, ...]
    quiet_ms: int
    since_propagation_ms: int


class IsrChangeNotified(Event, frozen=True, gc=False):
    """The leader created a notification znode that names `partitions`."""

    path: str
    partitions: tuple[TopicPartition, ...]
    quiet_ms: int
    since_propagation_ms: int


# -- replication: the follower ---------------------------------------------------------------------


class FetchSent(Event, frozen=True, gc=False):
    """A fetcher thread sends a fetch to `leader`, for these partitions in the request's order."""

    leader: int
    offsets: tuple[Offset, ...]
    session_epoch: int


class FetcherStarted(Event, frozen=True, gc=False):
    """A fetcher thread (one connection) to `leader` was started."""

    leader: int
    fetcher_id: int


class FetcherStopped(Event, frozen=True, gc=False):
    """A fetcher thread ended because it was idle or its leader moved."""

    leader: int
    fetcher_id: int


class PartitionDelayed(Event, frozen=True, gc=False):
    """A fetcher leaves a partition out of its requests for `delay_ms`; `reason` is the name of an
    error code."""

    partition: TopicPartition
    leader: int
    delay_ms: int
    reason: str


class PartitionMarkedFailed(Event, frozen=True, gc=False):
    """A fetcher gave up on a partition because of `reason`, the name of an error code or an
    exception. Fetching resumes only when a LeaderAndIsr adds the partition again."""

    partition: TopicPartition
    leader: int
    reason: str


class LogLoaded(Event, frozen=True, gc=False):
    """A broker that starts as a process has read this log from its files: offsets
    `log_start_offset` up to (not including) `leo`. `epochs` has the first offset of each leader
    epoch. A process that was killed may have written records that its trace lacks."""

    partition: TopicPartition
    log_start_offset: int
    leo: int
    epochs: tuple[EpochRun, ...] = ()


class LogTruncated(Event, frozen=True, gc=False):
    """Records from `to_offset` on were removed from the log of `broker` (`from_leo` was its
    LEO)."""

    partition: TopicPartition
    from_leo: int
    to_offset: int


class LogStartMoved(Event, frozen=True, gc=False):
    """The log of `broker` starts at `log_start_offset` now: records before it are not served any
    more. `reason`: client record deletion, leader offset incremented, segment deletion, or full
    truncation (a follower whose log ends before its leader's starts)."""

    partition: TopicPartition
    log_start_offset: int
    hw: int
    leo: int
    reason: str


# -- control requests at a broker ------------------------------------------------------------------


class LeaderAndIsr(Event, frozen=True, gc=False):
    """A LeaderAndIsr entry arrived. The broker applies it unless a `leader_and_isr_ignored`
    follows."""

    sender: int
    sender_epoch: int
    state: PartitionState


class LeaderAndIsrIgnored(Event, frozen=True, gc=False):
    """The broker does not apply the LeaderAndIsr entry; `error` is the error code in the
    response."""

    sender: int
    sender_epoch: int
    state: PartitionState
    error: str


class StopReplica(Event, frozen=True, gc=False):
    """A StopReplica entry arrived. The broker applies it unless a `stop_replica_ignored`
    follows."""

    sender: int
    sender_epoch: int
    partition: TopicPartition
    leader_epoch: int
    delete: bool


class StopReplicaIgnored(Event, frozen=True, gc=False):
    """The broker does not apply the StopReplica entry."""

    sender: int
    sender_epoch: int
    partition: TopicPartition
    leader_epoch: int
    delete: bool
    error: str


class LogDirFailed(Event, frozen=True, gc=False):
    """The broker took a log directory offline; these partitions were in it."""

    directory: int
    partitions: tuple[TopicPartition, ...]


class BecomesLeader(Event, frozen=True, gc=False):
    """makeLeader has completed."""

    partition: TopicPartition
    leader_epoch: int
    leo: int
    hw: int


class BecomesFollower(Event, frozen=True, gc=False):
    """makeFollower has completed."""

    partition: TopicPartition
    leader: int
    leader_epoch: int
    leo: int
    hw: int


class MetadataCacheUpdated(Event, frozen=True, gc=False):
    """The metadata cache of `broker` has applied one UpdateMetadata request: entries updated and
    partitions removed."""

    sender: int
    sender_epoch: int
    live_brokers: tuple[int, ...]
    states: tuple[PartitionState, ...]
    removed: tuple[TopicPartition, ...] = ()


class ControlRequestRefused(Event, frozen=True, gc=False):
    """A whole control request was refused: `error` is STALE_CONTROLLER_EPOCH or
    STALE_BROKER_EPOCH."""

    request: str
    sender: int
    sender_epoch: int
    error: str


# -- the controller --------------------------------------------------------------------------------


class ControllerElected(Event, frozen=True, gc=False):
    """This broker created `/controller` and raised `/controller_epoch`."""

    controller_epoch: int
    epoch_zk_version: int


class ControllerResigned(Event, frozen=True, gc=False):
    """This broker is no longer controller."""

    controller_epoch: int


class ControllerEventQueued(Event, frozen=True, gc=False):
    """An event was put on the controller's queue, with `behind` events ahead of it."""

    event: str
    behind: int


class ControllerEventProcessed(Event, frozen=True, gc=False):
    """The controller-event-thread has finished an event."""

    event: str
    queued_us: int
    took_us: int


class ControllerCacheUpdated(Event, frozen=True, gc=False):
    """partitionLeadershipInfo has a new entry; `why` is its origin (creation, notification,
    election ...). `replicas` is the assignment in the controller at that moment, `controller_epoch`
    the epoch of the controller that decided."""

    partition: TopicPartition
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    why: str
    replicas: tuple[int, ...] = ()
    controller_epoch: int = -1


class BrokerChange(Event, frozen=True, gc=False):
    """The controller compared the registered brokers with its cache."""

    added: tuple[int, ...]
    deleted: tuple[int, ...]
    bounced: tuple[int, ...]
    live: tuple[int, ...]


class PartitionStateChanged(Event, frozen=True, gc=False):
    """A transition of the partition state machine."""

    controller_epoch: int
    partition: TopicPartition
    from_state: str
    to_state: str


class ReplicaStateChanged(Event, frozen=True, gc=False):
    """A transition of the replica state machine."""

    controller_epoch: int
    partition: TopicPartition
    replica: int
    from_state: str
    to_state: str


class ReplicasOffline(Event, frozen=True, gc=False):
    """The controller learned from a LeaderAndIsr response that these replicas of broker `replica`
    are in a failed log directory."""

    replica: int
    partitions: tuple[TopicPartition, ...]


class ControlRequestSent(Event, frozen=True, gc=False):
    """A send thread of the controller wrote a request to broker `to`; `attempt` counts from 1."""

    to: int
    request: str
    partitions: tuple[TopicPartition, ...]
    attempt: int


class IsrChangeCleared(Event, frozen=True, gc=False):
    """The controller deleted these notification znodes."""

    paths: tuple[str, ...]


# -- clients ---------------------------------------------------------------------------------------


class RecordsProduced(Event, frozen=True, gc=False):
    """A producer received the result for `count` records of one partition: `ok` or the client
    library's error name.

    `handed_over` is when the first of them was passed to the client (microseconds). `told`
    (`polled_at` in Python) is when the driver next polls for results (0: unknown). `base_offset` is
    -1 on errors.
    """

    client: str
    partition: TopicPartition
    acks: str
    result: str
    base_offset: int
    count: int
    handed_over: int
    polled_at: int = msgspec.field(default=0, name="told")


class RecordsConsumed(Event, frozen=True, gc=False):
    """A consumer read records from `from_offset` up to (not including) `to_offset`; `hw` is the
    high watermark in the response."""

    client: str
    partition: TopicPartition
    from_offset: int
    to_offset: int
    hw: int


IGNORED, ROLLED_BACK = "ignored", "rolled back"
"""Outcomes of a proposal. Ignored: the response came too late to matter. Rolled back: nothing is
pending any more, and the ISR is the old one."""

# -- replication: the ISR through the controller ---------------------------------------------------


class AlterIsrProposed(Event, frozen=True, gc=False):
    """The leader proposes an ISR to the controller, to replace version `zk_version`; `pending` is
    the name of its state until the response."""

    partition: TopicPartition
    isr: tuple[int, ...]
    leader_epoch: int
    zk_version: int
    pending: str


class AlterIsrSent(Event, frozen=True, gc=False):
    """A broker sent AlterIsr with all its pending proposals to `controller`; `attempt` counts from
    1."""

    controller: int
    partitions: tuple[TopicPartition, ...]
    broker_epoch: int
    attempt: int


class AlterIsrDecided(Event, frozen=True, gc=False):
    """The controller's response for one partition of an AlterIsr of `sender`: `error` (NONE: `isr`
    is the partition's, as of `zk_version`). `proposed` is the requested ISR."""

    partition: TopicPartition
    sender: int
    proposed: tuple[int, ...]
    error: str
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int


class AlterIsrRefused(Event, frozen=True, gc=False):
    """A whole AlterIsr of `sender` was refused: `error` is NOT_CONTROLLER, STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR, or UNSUPPORTED_VERSION (a broker before 2.7, which does not know it)."""

    sender: int
    partitions: tuple[TopicPartition, ...]
    error: str


class AlterIsrFailed(Event, frozen=True, gc=False):
    """The leader's proposal was refused, or it could not send it. `error` is the response;
    `outcome` is the leader's reaction (ignored: the state has changed since; stays pending: until
    the next LeaderAndIsr; rolled back; resubmitted)."""

    partition: TopicPartition
    change: str
    error: str
    outcome: str
    cached_zk_version: int


AnyEvent = (
    ActionApplied
    | ActionReturned
    | Parked
    | ZkSent
    | ZkReply
    | ZkRequest
    | ZkTransaction
    | ZkWatchFired
    | ZkSessionState
    | ZnodeMalformed
    | BrokerStarting
    | BrokerRegistered
    | BrokerStarted
    | BrokerExited
    | BrokerHalted
    | ProcessStateChanged
    | ThreadFailed
    | RecordsAppended
    | FollowerStateUpdated
    | HwAdvanced
    | IsrUpdateStarted
    | IsrUpdated
    | IsrUpdateRejected
    | ControllerShrinkCounted
    | IsrChangeHeld
    | IsrChangeNotified
    | AlterIsrProposed
    | AlterIsrSent
    | AlterIsrDecided
    | AlterIsrRefused
    | AlterIsrFailed
    | FetchSent
    | FetcherStarted
    | FetcherStopped
    | PartitionDelayed
    | PartitionMarkedFailed
    | LogLoaded
    | LogTruncated
    | LogStartMoved
    | LeaderAndIsr
    | LeaderAndIsrIgnored
    | StopReplica
    | StopReplicaIgnored
    | LogDirFailed
    | BecomesLeader
    | BecomesFollower
    | MetadataCacheUpdated
    | ControlRequestRefused
    | ControllerElected
    | ControllerResigned
    | ControllerEventQueued
    | ControllerEventProcessed
    | ControllerCacheUpdated
    | BrokerChange
    | PartitionStateChanged
    | ReplicaStateChanged
    | ReplicasOffline
    | ControlRequestSent
    | IsrChangeCleared
    | RecordsProduced
    | RecordsConsumed
)
