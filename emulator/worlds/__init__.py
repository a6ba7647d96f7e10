"""Where a cluster runs: virtual time, real ZooKeeper, processes, real Kafka."""
