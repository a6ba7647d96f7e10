"""Guards of the leader's ISR rules and of its high watermark.

Each is read where Kafka's change was made: `broker/replica`, `broker/partition`, and the periodic
tasks of `broker/replica_manager`.
"""

from emulator.kafka.profiles.guards.base import Guard

LAG_BY_TIME_ONLY = Guard(
    name="lag-by-time-only",
    kafka="KAFKA-1546",
    since="0.9",
    does="A follower leaves the ISR by time alone. Without it: when its last fetch is older than"
    " replica.lag.time.max.ms, even at the leader's log end, or when it is more than"
    " replica.lag.max.messages behind.",
    citation="spec §3.3; Partition.scala@0.8.2.2 getOutOfSyncReplicas",
    removed={"replica.lag.max.messages": "4000"},
)

ISR_CHANGE_NOTIFICATIONS = Guard(
    name="isr-change-notifications",
    kafka="KAFKA-1367",
    since="0.9",
    does="Leaders notify the controller of their ISR changes. Without it: the controller and"
    " all metadata keep the old ISR until the controller reads the state for another"
    " reason.",
    citation="spec §4.2, H12; ReplicaManager.scala@0.9.0.1 maybePropagateIsrChanges",
)

ACKS_ARE_ALL_OR_ONE = Guard(
    name="acks-are-all-or-one",
    kafka="KAFKA-1697",
    since="0.9",
    does="A produce request with acks other than 0, 1 or all is refused. Without it: it"
    " succeeds when that many ISR members have its records, which are then not committed"
    " yet.",
    citation="spec §3.6; Partition.scala@0.8.2.2 checkEnoughReplicasReachOffset",
)

CAUGHT_UP_BY_LAST_FETCH = Guard(
    name="caught-up-by-last-fetch",
    kafka="KAFKA-4485",
    since="0.10.2",
    does="A follower that reaches the leader's log end at its previous fetch counts as caught"
    " up at that time. Without it: only a fetch at the very end of the log counts, and a"
    " follower that always trails slightly is expelled.",
    citation="spec §3.2; Replica.scala@0.10.2.2 updateLogReadResult",
)

HW_WAITS_FOR_CAUGHT_UP = Guard(
    name="hw-waits-for-caught-up",
    kafka="KAFKA-4485",
    since="0.10.2",
    does="The high watermark waits for followers that are caught up and not yet in the ISR."
    " Without it: it runs ahead of them, and they cannot come back.",
    citation="spec §3.5; Partition.scala@0.10.2.2 maybeIncrementLeaderHW",
)

CAUGHT_UP_TIME_RESET = Guard(
    name="caught-up-time-reset",
    kafka="KAFKA-4485",
    since="0.10.2",
    does="A new leader counts the members of its ISR as caught up now. Without it: their"
    " time starts when their objects were made, and the first shrink may expel them all.",
    citation="spec §3.8, H23; Partition.scala@0.10.2.2 makeLeader",
)

ISR_EXPIRATION_AT_HALF_LAG = Guard(
    name="isr-expiration-at-half-lag",
    kafka="KAFKA-4485",
    since="0.10.2",
    does="isr-expiration runs every replica.lag.time.max.ms / 2. Without it: every"
    " replica.lag.time.max.ms, so that a follower leaves after up to twice that time.",
    citation="spec §4.1; ReplicaManager.scala@0.10.2.2 startup",
)

JOIN_PAST_EPOCH_START = Guard(
    name="join-past-epoch-start",
    kafka="KAFKA-7128",
    since="2.0.1",
    does="A follower joins the ISR only past the start of the leader's epoch. Without it:"
    " reaching the high watermark is enough, which may be behind what is committed.",
    citation="spec §3.4, H16; Partition.scala@2.0.1 maybeExpandIsr",
)

STAY_AT_LOG_END = Guard(
    name="stay-at-log-end",
    kafka="KAFKA-7152",
    since="2.1",
    does="A follower that has all of the leader's records never leaves the ISR, no matter how"
    " long ago it fetched. Without it: a paused follower of an idle topic is expelled.",
    citation="spec §3.3; Partition.scala@2.1.1 getOutOfSyncReplicas",
)

FAILED_READ_KEEPS_STATE = Guard(
    name="failed-read-keeps-state",
    kafka="KAFKA-8400",
    since="2.4",
    does="A fetch that cannot be read leaves the follower's state alone. Without it: the follower"
    " counts as having nothing (log end -1).",
    citation="spec §3.2; ReplicaManager.scala@2.4.1 updateFollowerFetchState",
)

ISR_CHECK_UNDER_READ_LOCK = Guard(
    name="isr-check-under-read-lock",
    kafka="KAFKA-7538",
    since="2.5",
    does="Whether the ISR must change is checked under the read lock first. Without it: every"
    " fetch of a follower outside the ISR and every shrink pass takes the write lock.",
    citation="spec §3.3, §3.7; Partition.scala@2.5.1 maybeShrinkIsr",
)

OWN_WRITE_RECOGNISED = Guard(
    name="own-write-recognised",
    kafka="KAFKA-1382",
    since="0.8.2",
    does="A leader whose ISR write is refused reads the state back and recognises its own"
    " write. Without it: after a lost response it always expects the version before its"
    " own last write.",
    citation="spec §2.3, hazards B2; ReplicationUtils.scala@0.8.2.2 checkLeaderAndIsrZkData",
)

PARTITIONS_FAIL_ALONE = Guard(
    name="partitions-fail-alone",
    kafka="KAFKA-9769",
    since="2.7",
    does="If the settings of a new log cannot be read from ZooKeeper, only that log is not"
    " created. Without it: the whole LeaderAndIsr is aborted, and partitions before it"
    " have the epoch and no fetcher.",
    citation="hazards B4; ReplicaManager.scala@2.7.2 makeFollowers",
)

ONLY_THE_ASSIGNED_JOIN = Guard(
    name="only-the-assigned-join",
    kafka="KAFKA-1097",
    since="0.8.1",
    does="A leader drops replicas that are no longer assigned. Without it: a late fetch"
    " returns one to the ISR.",
    citation="hazards B24; Partition.scala@0.8.1 updateLeaderHWAndMaybeExpandIsr",
)

SHRINKS_OUTSIDE_THE_LOCK = Guard(
    name="shrinks-outside-the-lock",
    kafka="KAFKA-947",
    since="0.8",
    does="isr-expiration lists the led partitions under leaderPartitionsLock, and checks them"
    " after releasing it. Without it: the lock is held while ZooKeeper is written; a"
    " change of roles waits for it, and later control requests wait behind that.",
    citation="hazards B, small ones; ReplicaManager.scala@0.8.1.1 maybeShrinkIsr",
)

ROLES_KEPT_ONCE = Guard(
    name="roles-kept-once",
    kafka="KAFKA-1483",
    since="0.8.2",
    does="Only the partition itself records whether this broker leads it. Without it:"
    " isr-expiration uses a separate list, which an aborted LeaderAndIsr does not update:"
    " the broker leads, and never shrinks the ISR.",
    citation="hazards B, small ones; ReplicaManager.scala@0.8.1.1 makeLeaders, leaderPartitions",
)

CONTROLLERS_SHRINKS_COUNT = Guard(
    name="controllers-shrinks-count",
    kafka="KAFKA-2309",
    since="4.0",
    does="A leader also counts the controller's shrinks in IsrShrinksPerSec. Without it:"
    " shrinks after brokers' deaths are not in the metric. No version has it (PR 185 was"
    " closed).",
    citation="hazards B, small ones; KAFKA-2309",
)
