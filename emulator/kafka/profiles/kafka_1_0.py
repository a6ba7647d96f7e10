"""Kafka 1.0 (released 1.0.2): one controller thread with a queue, truncation by leader epoch and no
unclean elections by default (all 0.11); topics can be deleted; log directories fail separately."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_0_10_2 import PROFILE as BEFORE

LOG_DIR_EVENTS = "/log_dir_event_notification"

PROFILE = after(
    BEFORE,
    name="1.0",
    release="1.0.2",
    citation="KafkaConfig.scala@1.0.2; spec §8, §9",
    serves_from="end",
    controller_threads="event-queue",
    record_batches=True,
    received_replicas="in-order",
    quota_reapers_at_stop=0,
    reads_at_start=(*BEFORE.reads_at_start, "transactions", "producer-ids"),
    defaults={
        "unclean.leader.election.enable": "false",
        "delete.topic.enable": "true",
        "queued.max.request.bytes": "-1",
        # KIP-134 (0.11): consumers that start together cause a single rebalance.
        "group.initial.rebalance.delay.ms": "3000",
    },
    top_level_paths=(*BEFORE.top_level_paths, "/latest_producer_id_block", LOG_DIR_EVENTS),
    first_logs="slow",
    restarted_roles="slow",
    request_versions={
        "LeaderAndIsr": 1,
        "UpdateMetadata": 4,
        "Metadata": 5,
        "Fetch": 5,
        "ListOffsets": 2,
        "OffsetForLeaderEpoch": 0,
        "CreateTopics": 2,
        "DeleteTopics": 1,
        "DeleteRecords": 0,
        "CreatePartitions": 0,
        "AlterConfigs": 0,
    },
)
