"""The network between brokers: in memory, over TCP, and what faults do to it."""
