"""The two worlds: virtual time with a modelled ZooKeeper and network, and live on a real server."""
