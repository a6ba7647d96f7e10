"""Searches over schedules: wherever several things could happen next, one is chosen."""
