"""Expectations of scenarios, one kind per file: the form of its sentence, and how a run is
checked."""
