"""Guards of the metadata cache: which partitions a broker knows, and what it says of others.

Read in `broker/metadata_cache`, and in `broker/apis`, which asks the cache before a produce or a
fetch reaches the logs.
"""

from emulator.kafka.profiles.guards.base import Guard

UNKNOWN_PARTITIONS_REFUSED = Guard(
    name="unknown-partitions-refused",
    kafka="KAFKA-3396",
    since="0.10.1",
    does="A leader refuses to produce to and to fetch from a partition that is not in its metadata"
    " cache (UNKNOWN_TOPIC_OR_PARTITION). This is so after a deletion's UpdateMetadata, and before"
    " that of a new topic, whose followers then wait for a back-off. Without it: the broker checks"
    " only whether it has a replica.",
    citation="spec §4.6; KafkaApis.scala@0.10.1.0 handleProducerRequest, handleFetchRequest"
    " (bytecode; 0.10.0.1 has no such check)",
)

KNOWN_BY_PARTITION = Guard(
    name="known-by-partition",
    kafka="KAFKA-6796",
    since="2.0",
    does="A broker checks whether its metadata cache has the partition. One that only others host"
    " gets NOT_LEADER_OR_FOLLOWER. Without it: the broker checks only the topic, so it serves a"
    " new partition of a known topic before its UpdateMetadata, and the error for a partition that"
    " it does not host is always UNKNOWN_TOPIC_OR_PARTITION.",
    citation="spec §4.6; ReplicaManager.scala@2.0.1 and @1.1.1 getPartitionAndLeaderReplicaIfLocal,"
    " KafkaApis.scala handleProduceRequest (bytecode)",
)
