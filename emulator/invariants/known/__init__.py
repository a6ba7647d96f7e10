"""Failures of Kafka itself, recognised behind broken invariants; one file each."""
