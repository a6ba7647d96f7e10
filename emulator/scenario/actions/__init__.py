"""What can be done to a cluster from outside, one file each: faults and what heals them, and what
clients ask for."""
