"""Grids of runs on Spark executors, and runs into data sets."""
