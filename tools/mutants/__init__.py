"""Break the core in one place at a time; each must be noticed."""
