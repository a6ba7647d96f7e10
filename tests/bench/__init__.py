"""Benchmarks. With what `make compiled` has built, where it was built of these sources."""

from emulator import compiled

COMPILED = compiled.use()
