"""Kafka 2.6 (released 2.6.3): leaders write the ISR to ZooKeeper themselves, for the last time by
default."""

from types import MappingProxyType

from emulator.profiles.base import Profile

PROFILE = Profile(
    name="2.6",
    release="2.6.3",
    citation="KafkaConfig.scala@2.6.3; spec §8",
    defaults=MappingProxyType(
        {
            "replica.lag.time.max.ms": "30000",
            "replica.fetch.wait.max.ms": "500",
            "replica.fetch.min.bytes": "1",
            "replica.fetch.max.bytes": "1048576",
            "replica.fetch.response.max.bytes": "10485760",
            "replica.fetch.backoff.ms": "1000",
            "replica.socket.timeout.ms": "30000",
            "replica.high.watermark.checkpoint.interval.ms": "5000",
            "num.replica.fetchers": "1",
            "num.io.threads": "8",
            "num.network.threads": "3",
            "background.threads": "10",
            "request.timeout.ms": "30000",
            "controller.socket.timeout.ms": "30000",
            "zookeeper.session.timeout.ms": "18000",
            "zookeeper.max.in.flight.requests": "10",
            "min.insync.replicas": "1",
            "default.replication.factor": "1",
            "num.partitions": "1",
            "fetch.max.bytes": "57671680",
            "max.incremental.fetch.session.cache.slots": "1000",
            "auto.leader.rebalance.enable": "true",
            "leader.imbalance.check.interval.seconds": "300",
            "leader.imbalance.per.broker.percentage": "10",
            "controlled.shutdown.enable": "true",
            "controlled.shutdown.max.retries": "3",
            "controlled.shutdown.retry.backoff.ms": "5000",
            "unclean.leader.election.enable": "false",
            "log.dirs": "/tmp/kafka-logs",
            "log.flush.interval.messages": "9223372036854775807",
            "delete.topic.enable": "true",
            "replication.quota.window.num": "11",
            "replication.quota.window.size.seconds": "1",
        }
    ),
)
