"""Where a cluster runs: virtual time, real ZooKeeper, processes, containers, real Kafka."""
