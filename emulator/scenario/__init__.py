"""Scenarios: a cluster, what is done to it and when, and what is expected to follow."""
