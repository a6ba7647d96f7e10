"""Kafka's fixes by name: which there are, since when, and where each is read."""
