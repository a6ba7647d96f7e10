"""An emulator of Kafka's ZooKeeper-era replication control plane."""

__version__ = "0.1.0"
