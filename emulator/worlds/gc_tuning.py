"""How often Python looks for garbage in cycles while a world runs in virtual time.

A simulated run makes millions of small values that live as long as the trace, and hardly any cycle:
looking through them all again and again costs a tenth of its time and finds next to nothing. What
is there before the run is set aside (`gc.freeze`), and collections come rarely. Owns no world.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (100_000, 50, 100)
"""Values made before the youngest are looked through; how many such looks before older ones are."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Within: collections are rare. Afterwards all is as it was."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
