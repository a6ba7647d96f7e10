"""Logs of real clusters as traces: reading, clocks, import, diagnoses."""
