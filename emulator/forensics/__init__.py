"""What real clusters leave behind (logs, ZooKeeper's transactions) as traces; what they show."""
