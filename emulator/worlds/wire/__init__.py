"""Kafka's binary protocol: frames, headers, one file per group of APIs, record batches.

Converts the structs of `kafka.protocol.messages` to the bytes of a Kafka version, and back; the
schemas are kio's. Owns no rule of Kafka, no socket and no state.
"""

import sys
from typing import TYPE_CHECKING

# Where hypothesis is installed, as it is beside the tests, kio imports it and registers its types
# there: a fifth of what a broker process takes to start. `None` makes that import fail.
if not TYPE_CHECKING and "hypothesis" not in sys.modules:
    sys.modules["hypothesis"] = None
    import kio.static.primitive  # noqa: F401

    del sys.modules["hypothesis"]
