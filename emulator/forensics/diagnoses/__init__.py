"""What is wrong with a cluster, seen from its trace: one file per diagnosis, found by a scan."""
