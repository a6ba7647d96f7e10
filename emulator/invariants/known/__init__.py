"""Recognisers of Kafka's own failures behind violated invariants, one file each."""
