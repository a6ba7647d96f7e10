"""The worlds in which a cluster runs: virtual time, real ZooKeeper, processes, real Kafka."""
