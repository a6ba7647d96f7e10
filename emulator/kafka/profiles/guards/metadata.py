"""Guards of the metadata cache: which partitions a broker knows, and what it says of others.

Read in `broker/metadata_cache`, and in `broker/apis`, which asks the cache before a produce or a
fetch reaches the logs.
"""

from emulator.kafka.profiles.guards.base import Guard

UNKNOWN_PARTITIONS_REFUSED = Guard(
    name="unknown-partitions-refused",
    kafka="KAFKA-3396",
    since="0.10.1",
    does="A broker answers a produce or a fetch, a follower's too, with UNKNOWN_TOPIC_OR_PARTITION"
    " if the partition is not in its metadata cache, even if it leads it: from the deletion's"
    " UpdateMetadata on, and between the LeaderAndIsr and the UpdateMetadata of a new topic,"
    " whose followers then wait for a back-off. Without it: it asks only whether it has a replica.",
    citation="spec §4.6; KafkaApis.scala@0.10.1.0 handleProducerRequest, handleFetchRequest"
    " (bytecode; 0.10.0.1 has no such check)",
)

KNOWN_BY_PARTITION = Guard(
    name="known-by-partition",
    kafka="KAFKA-6796",
    since="2.0",
    does="A broker tells a partition that others host (NOT_LEADER_OR_FOLLOWER) from one that is not"
    " in its metadata cache (UNKNOWN_TOPIC_OR_PARTITION). Without it: it asks the cache about"
    " topics, so new partitions of a known topic are known, and has the second error for both.",
    citation="spec §4.6; ReplicaManager.scala@2.0.1 and @1.1.1 getPartitionAndLeaderReplicaIfLocal,"
    " KafkaApis.scala handleProduceRequest (bytecode)",
)
