"""Tasks, processes, locks, virtual time and randomness.

The core awaits only the primitives of this package. A kernel runs on one of two clocks: virtual
time jumps from event to event; live time waits on the wall clock and on an inbox that other threads
fill.
"""
