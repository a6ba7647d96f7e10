"""Laws that every run must keep; known/ recognises Kafka's own failures."""
