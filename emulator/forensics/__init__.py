"""Logs of real clusters: reading, clocks, import as traces, and diagnoses."""
