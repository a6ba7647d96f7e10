"""What a broker coordinates for clients: producer ids and consumer groups."""
