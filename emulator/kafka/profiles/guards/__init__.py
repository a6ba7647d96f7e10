"""Kafka's fixes by name: what each does, since when, and where the code reads it."""
