"""Exhaustive search of asynchronous ISR updates (KIP-497) in a small scope."""
