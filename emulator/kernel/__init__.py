"""A small kernel for coroutines: every Kafka thread is a task, every `synchronized` a lock, `await`
blocks a thread.

The core awaits nothing but the primitives of this package. Two clocks drive it: virtual time jumps
from event to event, live time waits on the wall clock and on an inbox that other threads fill.
"""
