"""Invariants of every run. `known/` recognises Kafka's own failures."""
