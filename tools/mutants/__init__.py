"""Break one rule at a time; each must be noticed."""
