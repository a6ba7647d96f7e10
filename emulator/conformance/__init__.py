"""The judge: compares emulated runs with recordings of real Kafka.

This room owns the format of recordings and the product's own judge. It knows the facts that a
recording holds and nothing of the core that produced a run: what it says of a run it says of a
real cluster too, so it must not import the broker, the controller or any world.
"""
