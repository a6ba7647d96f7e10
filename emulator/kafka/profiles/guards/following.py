"""Guards of followers: where they truncate to, and which of their fetches a leader refuses.

Read in `broker/fetcher` and `broker/out_of_range`, in `broker/partition` and in
`broker/replica_manager` where a broker takes a role, in `broker/local_reads` where a leader reads
for them, and in `broker/log_manager`.
"""

from emulator.kafka.profiles.guards.base import Guard

TRUNCATION_BY_EPOCH = Guard(
    name="truncation-by-epoch",
    kafka="KIP-101",
    since="0.11",
    does="A follower truncates to where its last epoch ends in the leader's log. Without it:"
    " to its high watermark, which may lie below what is committed (H17).",
    citation="spec §5.4, H17; ReplicaFetcherThread.scala@0.11.0.2 maybeTruncate",
)

TRUNCATION_IN_ROUNDS = Guard(
    name="truncation-in-rounds",
    kafka="KIP-279",
    since="2.0",
    does="The leader answers with the epoch that it knows, and the follower asks again until"
    " both know it. Without it: one round, to the end offset of the response; after two"
    " fail-overs in a row the logs may differ.",
    citation="spec §5.4; AbstractFetcherThread.scala@2.0.1 getOffsetTruncationState",
)

TRUNCATION_AFTER_MISSED_EPOCHS = Guard(
    name="truncation-after-missed-epochs",
    kafka="KAFKA-7164",
    since="2.0.1",
    does="A follower that learns of a later epoch of the same leader truncates again. Without"
    " it: it continues, although another broker may have led meanwhile (H24).",
    citation="spec §3.9, H24; Partition.scala@2.0.1 makeFollower",
)

EPOCH_START_RECORDED = Guard(
    name="epoch-start-recorded",
    kafka="KAFKA-7415",
    since="2.0.1",
    does="A new leader records the start of its epoch at once, and the last assignment of an epoch"
    " wins. Without it: only with its first record; until then it does not know where earlier"
    " epochs ended. A lower epoch is never recorded.",
    citation="spec §3.8; Partition.scala@2.0.1 makeLeader,"
    " LeaderEpochFileCache.scala@2.0.1 truncateAndAppend",
)

EPOCHS_DROPPED_AT_LOG_END = Guard(
    name="epochs-dropped-at-log-end",
    kafka="KAFKA-10706",
    since="2.6.1",
    unneeded_before="2.0.1",
    does="A follower that truncates to its log end forgets the epochs that begin there. Without"
    " it: a follower that led without a record asks its leader for that epoch again and again,"
    " and does not fetch.",
    citation="spec §5.4; Log.scala@2.6.3 truncateTo",
)

LOG_IN_RANGE_KEPT = Guard(
    name="log-in-range-kept",
    kafka="KAFKA-2143",
    since="0.9",
    does="A follower whose fetch is out of range keeps the records that the leader has too."
    " Without it: unless the leader's log is shorter, it drops its whole log and restarts"
    " at the leader's log start.",
    citation="spec §5.5; ReplicaFetcherThread.scala@0.8.2.2 handleOffsetOutOfRange",
)

OUT_OF_RANGE_NOT_FATAL = Guard(
    name="out-of-range-not-fatal",
    kafka="KAFKA-7414",
    since="2.0.1",
    does="A follower truncates to the end of a leader's log that is shorter than its own."
    " Without it: where unclean elections are forbidden it halts its broker.",
    citation="spec §5.5; ReplicaFetcherThread.scala@1.0.2 handleOffsetOutOfRange",
)

LOG_START_FOLLOWED = Guard(
    name="log-start-followed",
    kafka="KIP-107",
    since="0.11",
    does="A log may start within a segment, and a follower's starts no earlier than its leader's:"
    " records can be deleted on request. Without it: each replica deletes whole segments, by its"
    " own retention.",
    citation="spec §3.10; Partition.scala@0.11.0.2 deleteRecordsOnLeader,"
    " ReplicaFetcherThread.scala@0.11.0.2 processPartitionData",
)

FAILED_PARTITIONS_LEAVE = Guard(
    name="failed-partitions-leave",
    kafka="KIP-461",
    since="2.3",
    does="A partition that a fetcher cannot write leaves it until the next LeaderAndIsr."
    " Without it: the fetcher tries again after every back-off, or ends where the fetched"
    " records do not start at its log end.",
    citation="spec §5.5; AbstractFetcherThread.scala@2.3.1 markPartitionFailed",
)

LOG_DIRS_FAIL_ALONE = Guard(
    name="log-dirs-fail-alone",
    kafka="KIP-112",
    since="1.0",
    does="A log directory that cannot be written takes its own partitions offline. Without it: the"
    " first write that fails halts the broker.",
    citation="spec §1.8; ReplicaManager.scala@0.11.0.2 appendToLocalLog,"
    " ReplicaFetcherThread.scala@0.11.0.2 processPartitionData",
)

HW_ANSWERS_NO_FETCH = Guard(
    name="hw-answers-no-fetch",
    kafka="KAFKA-9952",
    since="2.6",
    unneeded_before="2.4",
    does="A follower's fetch that found nothing waits for records. Without it: it is answered"
    " as soon as the high watermark passes the last one sent to the follower, and so is"
    " the next one, with nothing new.",
    citation="spec §3.5; DelayedFetch.scala@2.4.1 tryComplete, Replica.scala@2.4.1"
    " lastSentHighWatermark",
)

NEW_FOLLOWER_ANSWERS = Guard(
    name="new-follower-answers",
    kafka="KAFKA-9198",
    since="0.10.0",
    does="A leader that becomes a follower completes the produce and fetch requests that wait for"
    " the partition. Without it: acks=all requests wait for their timeout, and later requests on"
    " their connections with them.",
    citation="spec §4.3, no ticket of its own found; ReplicaManager.scala@0.9.0.1 and @0.10.0.0"
    " makeFollowers (bytecode; recordings of 0.8.2.2 and 0.9.0.1 five-brokers-pauses)",
)

STOPPED_REPLICA_ANSWERS = Guard(
    name="stopped-replica-answers",
    kafka="KAFKA-9198",
    since="2.4",
    does="StopReplica completes the produce and fetch requests that wait for the partition. Without"
    " it: a leader that a reassignment removes gets no LeaderAndIsr, so acks=all requests wait for"
    " their timeout, and later requests on their connections with them.",
    citation="spec §4.4; ReplicaManager.scala@2.4.1 stopReplica,"
    " completeDelayedFetchOrProduceRequests",
)

FETCH_FENCING = Guard(
    name="fetch-fencing",
    kafka="KIP-320",
    since="2.1",
    does="Fetches and OffsetsForLeaderEpoch requests carry the leader epoch, and a leader"
    " refuses any other epoch. Without it: a fetch of an old epoch is served, and counts"
    " as caught up (H15).",
    citation="spec §5.3, §11.4, H15; ReplicaFetcherThread.scala@2.1.1 buildFetch",
)

FETCHES_READ_UNDER_LOCK = Guard(
    name="fetches-read-under-lock",
    kafka="KIP-320",
    since="2.1",
    does="A fetch reads a partition under its lock, so it waits while the leader writes the ISR to"
    " ZooKeeper. Without it: only a follower's fetch that arrives meanwhile does, to update the"
    " follower's state; one that was delayed before is answered.",
    citation="spec §4.6; Partition.scala@2.0.1 leaderReplicaIfLocal, @2.1.1 readRecords (bytecode;"
    " recording of 0.9.0.1 five-brokers-pauses)",
)

SESSION_EPOCHS_KEPT = Guard(
    name="session-epochs-kept",
    kafka="KAFKA-9338",
    since="2.5",
    unneeded_before="2.1",
    does="A leader remembers the leader epochs of a fetch session. Without it: only"
    " a session's first fetch is fenced. A follower that missed an epoch is still served, and may"
    " join the ISR.",
    citation="spec §5.3; FetchSession.scala@2.4.1 CachedPartition.reqData (bytecode; recording of"
    " 2.1.1 controlled-shutdown)",
)

REPLICA_MADE_WITHOUT_LEADER = Guard(
    name="replica-made-without-leader",
    kafka="KAFKA-1647",
    since="0.8.2",
    does="A broker that is to follow an unknown leader creates the replica all the same."
    " Without it: the next checkpoint is written without that replica's high watermark,"
    " and after a hard kill it is 0.",
    citation="hazards B, small ones; ReplicaManager.scala@0.8.2.2 makeFollowers",
)

UNASSIGNED_FETCH_IS_EMPTY = Guard(
    name="unassigned-fetch-is-empty",
    kafka="KAFKA-5758",
    since="1.0",
    does="A leader reads nothing for a broker without an assigned replica, and goes on with the"
    " fetch's next partition. Without it: the whole fetch fails. All partitions that this broker"
    " fetches from the leader wait for a back-off, and acks=all with them; in 0.9, whose error"
    " response the follower cannot read, for two.",
    citation="spec §5.3; Partition.scala@0.10.2.2 updateReplicaLogReadResult,"
    " FetchRequest.scala@0.9.0.1 handleError (bytecode; recordings of five-brokers-moves)",
)

TRUNCATION_ON_FETCH = Guard(
    name="truncation-on-fetch",
    kafka="KAFKA-10554",
    since="2.8",
    does="A follower fetches from its log end at once and says the epoch of its last record; the"
    " leader answers where the two logs part, and the follower truncates to there. Without it, and"
    " with an inter.broker.protocol.version below 2.7: it asks with OffsetsForLeaderEpoch and"
    " truncates before its first fetch.",
    citation="spec §5.4; AbstractFetcherThread.scala@2.8.2 truncateOnFetchResponse",
)

DIVERGING_FETCH_NOT_COUNTED = Guard(
    name="diverging-fetch-not-counted",
    kafka="KAFKA-13141",
    since="2.7.2",
    unneeded_before="2.7",
    does="A leader takes no note of a fetch that it answers with a diverging epoch. Without it: it"
    " counts the follower's records, which are to be truncated, as its own, and may commit what no"
    " follower has (H25). 2.8.0 lacks it too.",
    citation="spec §3.3, H25; ReplicaManager.scala@2.7.2 updateFollowerFetchState",
)

RANGE_BEFORE_DIVERGENCE = Guard(
    name="range-before-divergence",
    kafka="KAFKA-12996",
    since="2.7.2",
    unneeded_before="2.7",
    does="A leader answers a fetch from before its log start with OFFSET_OUT_OF_RANGE, also if the"
    " logs diverge, and the follower begins where the leader's log does. Without it: with the"
    " diverging epoch, and the follower, which cannot start its log at the leader's start, fails."
    " 2.8.0 lacks it too.",
    citation="spec §5.4; Partition.scala@2.7.2 readRecords",
)

TRUNCATION_BEFORE_WATERMARK = Guard(
    name="truncation-before-watermark",
    kafka="KAFKA-14704",
    since="3.3.3",
    unneeded_before="2.8",
    does="A follower that receives a diverging epoch truncates, and applies nothing else of that"
    " response. Without it: it first applies the leader's high watermark, so that for a moment"
    " records that it is about to truncate count as committed.",
    citation="spec §5.4; AbstractFetcherThread.scala@3.3.2 processFetchRequest",
)

FETCHES_COMPLETED_OUTSIDE_THE_LOCK = Guard(
    name="fetches-completed-outside-the-lock",
    kafka="KAFKA-7697",
    since="2.1.1",
    does="An append checks parked fetches after releasing leaderIsrUpdateLock. Without it: it"
    " checks them under the lock, and takes the lock of each partition fetched together"
    " with its own. Two appends and a waiting writer then deadlock.",
    citation="hazards B, small ones; Partition.scala@2.1.1 appendRecordsToLeader",
    unneeded_before="2.1",
)

FETCHER_SHUTDOWN_ENDS_FETCH = Guard(
    name="fetcher-shutdown-ends-fetch",
    kafka="KAFKA-6051",
    since="1.1",
    does="The end of a fetcher thread closes its connection first. Without it: it waits for the"
    " response to the fetch in flight, up to replica.fetch.wait.max.ms, and holds the lock of all"
    " fetchers: the next StopReplica or LeaderAndIsr of a broker that stops may come too late.",
    citation="spec §5.1; ReplicaFetcherThread.scala@1.1.1 initiateShutdown",
)

CLOSED_CONNECTIONS_NOTICED = Guard(
    name="closed-connections-noticed",
    kafka="KAFKA-3916",
    since="0.10.1",
    does="A fetcher or send thread looks whether the other end has closed its connection before it"
    " uses it again. Without it: the next request is lost with the connection, and the thread backs"
    " off first. A follower that was paused while its leader restarted fetches a second later.",
    citation="spec §5.1; NetworkClientBlockingOps.scala@0.10.2.2 isReady, which 0.9.0.1 lacks (read"
    " from bytecode; recording of 0.9.0.1 quick-bounce)",
    unneeded_before="0.9",
)

ONE_BACK_OFF = Guard(
    name="one-back-off",
    kafka="KAFKA-8529",
    since="3.1",
    does="A fetcher thread that loses its connection delays its partitions by"
    " replica.fetch.backoff.ms. Without it: it waits that long itself and then delays them, so they"
    " are fetched again after twice the time.",
    citation="spec §5.3; AbstractFetcherThread.scala@3.3.2 processFetchRequest,"
    " AbstractFetcherThreadTest.testDelay",
)

REQUESTS_OUTLIVE_CONNECTIONS = Guard(
    name="requests-outlive-connections",
    kafka="KAFKA-3703",
    since="0.10.1",
    does="A broker processes the requests that it has read from a connection before its end."
    " Without it (0.9, with the Java Selector): both in one poll, and the requests are dropped. A"
    " broker that was paused for long misses what its controller sent before it closed the"
    " connection.",
    citation="spec §6.10; Selector.java@0.9.0.1 poll, which lacks closingChannels (recordings of"
    " 0.9.0.1, 0.10.2.2 and 2.1.1 five-brokers-pauses). Emulated where brokers share one process",
    unneeded_before="0.9",
)
