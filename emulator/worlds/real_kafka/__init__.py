"""A real Apache Kafka cluster as local processes: the third world, behind the port of actions."""
