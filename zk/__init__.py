"""ZooKeeper as Kafka needs it, twice: a model in virtual time and a real server.

It knows nothing of the emulator.
"""
