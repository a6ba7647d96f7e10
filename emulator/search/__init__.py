"""Schedules, fuzzing, and guided search for the schedule of a recording.

A *segment* lies between two actions of a scenario: chance is drawn anew in each. A *choice* is what
a run leaves open and a search decides: the seed of a named stream, or which event is next. A
*candidate* is the set of choices that a search tries next.
"""
