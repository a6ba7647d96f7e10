"""ZooKeeper modelled: the tree, sessions, watches, and the Java client."""
