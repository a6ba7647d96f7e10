"""Kafka's binary protocol: frames, headers, one file per group of APIs, record batches.

Converts the structs of `kafka.protocol.messages` to the bytes of a Kafka version, and back; the
schemas are kio's. Owns no rule of Kafka, no socket and no state.
"""
