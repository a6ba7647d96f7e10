"""What Kafka itself gets wrong, one file each: how to know it when an invariant has broken."""
