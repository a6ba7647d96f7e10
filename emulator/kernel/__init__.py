"""Tasks, processes, locks, virtual time and chance.

The core awaits nothing but the primitives of this package. Two clocks drive it: virtual time jumps
from event to event, live time waits on the wall clock and on an inbox that other threads fill.
"""
