"""The core: Kafka's rules, which know no clock, chance, socket or thread."""
