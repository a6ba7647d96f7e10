"""Kafka 0.8.2 (released 0.8.2.2): lag by messages and by time, no notifications of ISR changes,
callbacks under one lock, ZkClient."""

from emulator.kafka.profiles.base import Profile, guards_of

PROFILE = Profile(
    name="0.8.2",
    release="0.8.2.2",
    citation="KafkaConfig.scala@0.8.2.2; spec §3.2, §3.3, §8, §9",
    guards=guards_of("0.8.2.2"),
    controller_threads="callbacks",
    zookeeper_client="zkclient",
    new_partitions="read-again",
    registration_version=1,
    topic_version=1,
    send_backoff_ms=300,
    record_batches=False,
    leaders_in_request=True,
    serves_from="controller",
    defaults={
        # Both limits hold at once: a follower leaves for the one that it breaks first.
        "replica.lag.time.max.ms": "10000",
        "replica.lag.max.messages": "4000",
        "replica.fetch.wait.max.ms": "500",
        "replica.fetch.min.bytes": "1",
        "replica.fetch.max.bytes": "1048576",
        "replica.socket.timeout.ms": "30000",
        "replica.high.watermark.checkpoint.interval.ms": "5000",
        "num.replica.fetchers": "1",
        "num.io.threads": "8",
        "num.network.threads": "3",
        "background.threads": "10",
        "controller.socket.timeout.ms": "30000",
        "controller.message.queue.size": "2147483647",
        "zookeeper.session.timeout.ms": "6000",
        "min.insync.replicas": "1",
        "default.replication.factor": "1",
        "num.partitions": "1",
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": "300",
        "leader.imbalance.per.broker.percentage": "10",
        "controlled.shutdown.enable": "true",
        "controlled.shutdown.max.retries": "3",
        "controlled.shutdown.retry.backoff.ms": "5000",
        # Until 0.11: a partition without a live member of its ISR gets any live replica as leader.
        "unclean.leader.election.enable": "true",
        "log.dirs": "/tmp/kafka-logs",
        "log.flush.interval.messages": "9223372036854775807",
        "delete.topic.enable": "false",
        "socket.request.max.bytes": "104857600",
        "max.connections.per.ip": "2147483647",
        "connections.max.idle.ms": "600000",
    },
    # Later settings, and what this version's code does in their place.
    fixed={
        "request.timeout.ms": "30000",
        "replica.fetch.backoff.ms": "200",
        # No limit for a whole response before KIP-74 (0.10.1).
        "replica.fetch.response.max.bytes": "2147483647",
        "fetch.max.bytes": "2147483647",
        # ZkClient blocks: one request after the other; and there are no fetch sessions (1.1).
        "zookeeper.max.in.flight.requests": "1",
        "max.incremental.fetch.session.cache.slots": "0",
        "replication.quota.window.num": "11",
        "replication.quota.window.size.seconds": "1",
        # Requests are counted, their bytes are not (KIP-72, 1.0), and connections only by address
        # (KIP-402, 2.3).
        "queued.max.request.bytes": "-1",
        "max.connections": "2147483647",
    },
    top_level_paths=(
        "/consumers",
        "/brokers/ids",
        "/brokers/topics",
        "/config/changes",
        "/config/topics",
        "/admin/delete_topics",
    ),
    request_versions={
        "LeaderAndIsr": 0,
        "UpdateMetadata": 0,
        "StopReplica": 0,
        "ControlledShutdown": 0,
        "Fetch": 0,
    },
)
