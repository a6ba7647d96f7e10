"""The catalogue: hazards as files, played, and what was seen of them."""
