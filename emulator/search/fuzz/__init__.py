"""Random clusters and faults, with every invariant checked."""
