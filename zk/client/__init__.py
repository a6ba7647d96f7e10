"""Kafka's ZooKeeper client and the payloads of its znodes."""
