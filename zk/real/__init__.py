"""Real ZooKeeper servers: connections, proxies, logs, processes."""
