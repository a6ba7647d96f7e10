"""Records as a log keeps them and a read finds them: no contents, only offsets, size and epoch.

Structs, and so in a file of their own: `offset_log` may be compiled (`emulator.compiled`).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Records appended together: offsets `base_offset` to `next_offset` - 1, `size` bytes. `data`
    is what a client sent, where one did; nobody here looks into it."""

    base_offset: int
    next_offset: int
    size: int
    leader_epoch: int
    data: bytes = b""

    def alone(self) -> Iterator[Batch]:
        """Each record by itself; together they have as many bytes."""
        count = self.next_offset - self.base_offset
        for n in range(count):
            size = self.size * (n + 1) // count - self.size * n // count
            yield Batch(self.base_offset + n, self.base_offset + n + 1, size, self.leader_epoch)


class ReadInfo(msgspec.Struct, frozen=True, gc=False):
    """What a read found (LogReadInfo): offsets as they were before the read."""

    batches: tuple[Batch, ...]
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
