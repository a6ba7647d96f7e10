"""Races written as tests: a cluster in a test's hands, in either world, and the pytest plug-in."""
