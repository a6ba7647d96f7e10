"""A broker: partitions and their rules, request handlers, fetchers, metadata cache."""
