"""Kafka versions as data: defaults, guards, strategies; one file per version line."""
