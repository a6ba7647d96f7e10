"""`metadata of orders-0 never shows v1 to v24`, or `shows v2`: versions of the state znode, at any
broker.

A version is shown when some broker's metadata cache contained it. Unknown when the znode never
reached the last of these versions.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.trace.values import TopicPartition


class MetadataSkips(Check):
    forms = (
        "metadata of {partition} never shows {first:version} to {last:version}",
        "metadata of {partition} never shows {last:version}",
        "metadata of {partition} shows {expected:version}",
    )
    partition: TopicPartition
    first: int | None = None
    last: int | None = None
    expected: int | None = None

    def at_end(self) -> Finding:
        now = self.state.partitions.of(self.partition).now
        version = now.version if now else -1
        last = self.expected if self.last is None else self.last
        assert last is not None
        if version < last:
            return Finding(None, f"the state znode reached only v{version}")
        shown = self.state.propagation.versions_shown(self.partition)
        seen = "shown: " + (", ".join(f"v{v}" for v in sorted(shown)) or "none")
        if self.expected is not None:
            return Finding(self.expected in shown, seen)
        first = last if self.first is None else self.first
        return Finding(not any(first <= v <= last for v in shown), seen)
