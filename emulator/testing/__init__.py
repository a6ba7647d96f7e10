"""The pytest plug-in: a cluster controlled by a test."""
