"""Kafka's binary protocol: frames, headers, one file per group of APIs, record batches.

Turns the structs of `kafka.protocol.messages` into what Kafka of the version writes, and back;
the schemas are kio's. Owns no rule of Kafka, no socket and no state: bytes in, structs out.
"""
