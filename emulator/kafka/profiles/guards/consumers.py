"""Guards of what consumers read, and of those that fetch from followers (KIP-392).

Read in `broker/partition`, `broker/replica_selector`, `broker/local_reads`,
`broker/replica_manager` and `broker/fetcher_thread`.
"""

from emulator.kafka.profiles.guards.base import Guard

OFFSETS_BEHIND_ELECTION_HIDDEN = Guard(
    name="offsets-behind-election-hidden",
    kafka="KIP-207",
    since="2.2",
    does="Until a new leader has committed a record of its own epoch, it does not answer consumers"
    " where the committed records end, or that none has the time that they ask for. Without it: it"
    " answers with its high watermark, which may be lower than that of the former leader.",
    citation="Partition.scala@2.6.3 fetchOffsetForTimestamp; PartitionTest"
    " testMonotonicOffsetsAfterLeaderChange",
)

FETCH_FROM_FOLLOWERS = Guard(
    name="fetch-from-followers",
    kafka="KIP-392",
    since="2.4",
    does="A leader with a `replica.selector.class` names the replica that a consumer should read"
    " from, and followers serve consumers. Without it: only leaders do.",
    citation="spec §4.6; ReplicaManager.scala@2.4.1 findPreferredReadReplica, readFromLocalLog",
)

PREFERRED_REPLICA_AT_ONCE = Guard(
    name="preferred-replica-at-once",
    kafka="KAFKA-13767",
    since="3.3",
    unneeded_before="2.4",
    does="A fetch for which the leader prefers another replica is answered at once. Without it:"
    " when its wait is over, or other partitions have records.",
    citation="spec §4.6; ReplicaManager.scala@3.3.2 fetchMessages",
)

PREFERRED_REPLICA_IN_ISR = Guard(
    name="preferred-replica-in-isr",
    kafka="KAFKA-14372",
    since="3.3.2",
    unneeded_before="2.4",
    does="Only ISR members are preferred. Without it: any replica that has the requested offset,"
    " even if it lags behind for good.",
    citation="spec §4.6; ReplicaManager.scala@3.3.2 findPreferredReadReplica",
)

FOLLOWER_HW_COMPLETES_FETCHES = Guard(
    name="follower-hw-completes-fetches",
    kafka="KAFKA-14334",
    since="3.3.2",
    unneeded_before="2.4",
    does="A consumer's fetch that waits at a follower is answered when the follower's high"
    " watermark advances. Without it: when its wait is over.",
    citation="spec §4.6; ReplicaFetcherThread.scala@3.3.2 completeDelayedFetchRequests",
)
