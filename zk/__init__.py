"""ZooKeeper as Kafka uses it, in two forms: a model in virtual time and a real server.

This package does not depend on the emulator.
"""
