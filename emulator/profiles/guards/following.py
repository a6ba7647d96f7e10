"""Guards of followers: where they truncate to, and which of their fetches a leader refuses.

Read in `broker/fetcher`, and in `broker/partition` where a broker takes a role.
"""

from emulator.profiles.guards.base import Guard

TRUNCATION_BY_EPOCH = Guard(
    name="truncation-by-epoch",
    kafka="KIP-101",
    since="0.11",
    does="A follower truncates to where the leader's log left the follower's last epoch. Without"
    " it: to its high watermark, which may lie below what is committed (H17).",
    citation="spec §5.4, H17; ReplicaFetcherThread.scala@0.11.0.2 maybeTruncate",
)

TRUNCATION_IN_ROUNDS = Guard(
    name="truncation-in-rounds",
    kafka="KIP-279",
    since="2.0",
    does="The leader answers with the epoch that it knows, and the follower asks again until both"
    " know it. Without it: one round, to the end offset of the answer; after two fail-overs in a"
    " row the logs may differ.",
    citation="spec §5.4; AbstractFetcherThread.scala@2.0.1 getOffsetTruncationState",
)

TRUNCATION_AFTER_MISSED_EPOCHS = Guard(
    name="truncation-after-missed-epochs",
    kafka="KAFKA-7164",
    since="2.0.1",
    does="A follower that hears of a later epoch of the same leader truncates again. Without it: it"
    " goes on, although another may have led meanwhile (H24).",
    citation="spec §3.9, H24; Partition.scala@2.0.1 makeFollower",
)

EPOCH_START_RECORDED = Guard(
    name="epoch-start-recorded",
    kafka="KAFKA-7415",
    since="2.0.1",
    does="A new leader notes at once where its epoch begins. Without it: only with its first"
    " record; until then it does not know where epochs before its own ended.",
    citation="spec §3.8; Partition.scala@2.0.1 makeLeader",
)

FETCH_FENCING = Guard(
    name="fetch-fencing",
    kafka="KIP-320",
    since="2.1",
    does="Fetches and questions for epochs carry the leader epoch, and a leader refuses another"
    " than its own. Without it: one of an old epoch is served, and counts as caught up (H15).",
    citation="spec §5.3, §11.4, H15; ReplicaFetcherThread.scala@2.1.1 buildFetch",
)
