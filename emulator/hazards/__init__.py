"""The catalogue of Kafka's own failures, played without and with the cure."""
