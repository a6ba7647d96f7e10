"""Runs: one play, judged; its directory, summary, replay and comparison."""
