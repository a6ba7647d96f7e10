"""Searching: random clusters and faults, schedules, and the schedule of a recording."""
