"""Schedules, fuzzing, and guided search for the schedule of a recording."""
