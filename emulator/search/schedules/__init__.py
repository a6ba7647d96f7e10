"""Schedules: where several things could happen next, one is chosen."""
