"""Searching: worlds drawn at random, played, judged by invariants, and made small."""
