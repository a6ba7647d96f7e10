"""Grids of runs on Spark executors, and runs into data sets.

An executor's first import of ours is this package: what it plays may be compiled."""

from emulator import compiled

compiled.use()
