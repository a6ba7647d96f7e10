"""Generated pages of docs/."""
