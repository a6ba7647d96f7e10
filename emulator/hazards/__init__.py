"""Kafka's own failures: one YAML file each, played without its cure and with it."""
