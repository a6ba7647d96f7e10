"""Schedules, fuzzing, and guided search for the schedule of a recording.

A *segment* lies between two actions of a scenario: each starts new random streams. A *choice* is a
decision that a run leaves open and a search makes: the seed of a named stream, or which event is
next. A *candidate* is the set of choices that a search tries next.
"""
