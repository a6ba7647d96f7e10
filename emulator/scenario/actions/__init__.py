"""The actions that can be applied to a cluster from outside, one per file: faults, their remedies,
and client requests."""
