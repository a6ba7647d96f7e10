"""Each broker in its own process or container."""
