"""The pytest plug-in: a cluster in the hands of a test."""
