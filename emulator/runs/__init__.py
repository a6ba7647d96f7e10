"""Judged plays, run directories, summaries, replay and comparison."""
