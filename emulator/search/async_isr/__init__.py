"""Asynchronous ISR updates (KIP-497), searched completely at a small scope."""
