"""Search for a schedule that matches a recording."""
