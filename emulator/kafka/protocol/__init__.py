"""What brokers, controllers and clients say to each other."""
