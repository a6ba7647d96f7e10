"""The requests and responses of brokers, controllers and clients."""
