"""Python's garbage collection during a run in virtual time.

A simulated run creates millions of small values that live as long as the trace, and hardly any
reference cycles. Scanning them repeatedly costs a tenth of the time and finds almost nothing.
Existing objects are excluded (`gc.freeze`), and collections are rare. What ended runs leave is
collected before every tenth run only: that scans all objects of the process, which takes a fifth of
a short run. Owns no world.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

THRESHOLDS = (100_000, 50, 100)
"""Values made before the youngest are looked through; how many such looks before older ones are."""


_runs = count()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Within this context collections are rare; afterwards the previous settings apply again."""
    before = gc.get_threshold()
    if next(_runs) % 10 == 0:
        gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
