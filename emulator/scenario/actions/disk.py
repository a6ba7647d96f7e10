"""Disk faults: no free space, failing calls, flipped bits, bad sectors.

They need brokers with their logs in files (`storage: files` in the scenario's `cluster`): the
modelled disk injects them below the real storage code. A failed directory stays offline until its
broker restarts, even after the disk is repaired. A process always has files, and a
disk of its own that can be full.
"""

from __future__ import annotations

from typing import Literal

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw

Call = Literal["", "open", "read", "write", "fsync", "rename", "truncate", "unlink"]


class DiskFault(Action, frozen=True, tag="disk"):
    """Injects a fault into a log directory. `error`: the next `count` calls of a kind (`call`; any
    if left out) fail with EIO, all of them without `count`. `full`: after `free_bytes` writes fail
    with ENOSPC. `short_writes`: a write writes only part of its bytes. `bit_flip`: one bit of a log
    is flipped. `bad_sector`: one sector of a log is unreadable. `directory`: its number in
    `log.dirs`."""

    broker: int
    fault: Literal["error", "full", "short_writes", "bit_flip", "bad_sector"] = "error"
    call: Call = ""
    count: int | None = None
    free_bytes: int = 0
    directory: int = 0

    needs_files = True
    weight_on_files = 10
    soak_weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        """Bit flips are rare, because they always lose records."""
        broker = draw.broker
        match draw.below(12):
            case 0:
                return cls(broker, "bit_flip")
            case 1 | 2:
                return cls(broker, "bad_sector")
            case 3 | 4:
                return cls(broker, "full", free_bytes=draw.spread(1, 100_000))
            case 5 | 6:
                return cls(broker, "short_writes")
            case _:
                calls: tuple[Call, ...] = ("", "write", "write", "fsync", "rename", "open")
                return cls(broker, "error", draw.one_of(calls), draw.one_of((1, 1, 2, None)))

    @classmethod
    def drawn_for_soak(cls, draw: Draw) -> Action:
        """Processes have the machine's disk, which does nothing else."""
        return cls(draw.broker, "full")

    def wrong(self) -> str | None:
        if self.fault != "error" and (self.call or self.count is not None):
            return f"{self.fault} takes no call and no count: they belong to error"
        if self.fault != "full" and self.free_bytes:
            return f"{self.fault} takes no free_bytes: they belong to full"
        return None

    def apply(self, world: World) -> None:
        host = world.hosts[self.broker]
        match self.fault:
            case "error":
                host.fail_disk_calls(self.directory, self.call, self.count)
            case "full":
                host.limit_space(self.free_bytes)
            case "short_writes":
                host.shorten_writes(self.directory)
            case "bit_flip" | "bad_sector":
                host.damage_log(self.directory, self.fault)

    def healed(self) -> Action:
        return MendDisk(self.broker)


class MendDisk(Action, frozen=True, tag="mend_disk"):
    """The disk works again with its current content; a flipped bit stays."""

    broker: int

    needs_files = True

    def apply(self, world: World) -> None:
        world.hosts[self.broker].mend_disk()
