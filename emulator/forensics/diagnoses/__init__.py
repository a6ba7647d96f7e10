"""Problems of a cluster, diagnosed from its trace: one file per diagnosis."""
