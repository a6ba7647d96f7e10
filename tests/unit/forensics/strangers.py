"""Logs of real clusters that `isr record` ran, given away as a stranger's would come.

`given` unpacks a recorded cluster's logs into a folder; the other functions do to it what happens
to logs: a clock that is wrong, a file that was rotated, gzipped, or is not there.
"""

from __future__ import annotations

import datetime as dt
import gzip
import re
from pathlib import Path

LOGS = Path(__file__).with_name("logs")
STUCK = "kafka-2.6.3-leader-loses-zookeeper"
SHRINK = "kafka-2.6.3-shrink-and-expand"
CRASH_RPC = "kafka-2.7.2-leader-crash"
_TIME = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]", re.MULTILINE)


def given(name: str, folder: Path, *, transactions: bool = True) -> Path:
    """All logs of a recorded cluster; with ZooKeeper's transaction log or without."""
    for packed in sorted((LOGS / name).rglob("*.gz")):
        if packed.name.startswith("log.") and not transactions:
            continue
        plain = folder / packed.relative_to(LOGS / name).with_suffix("")
        plain.parent.mkdir(parents=True, exist_ok=True)
        plain.write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


def shift(folder: Path, broker: int, ms: int) -> None:
    """The clock of a broker was that much ahead."""

    def later(found: re.Match[str]) -> str:
        at = dt.datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=dt.UTC)
        at += dt.timedelta(milliseconds=int(found[2]) + ms)
        return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}]"

    for log in (folder / f"broker-{broker}").glob("*.log*"):
        log.write_text(_TIME.sub(later, log.read_text()))


def rotate(log: Path) -> None:
    """As log4j's DailyRollingFileAppender does, in the middle."""
    rows = log.read_text().splitlines(keepends=True)
    middle = next(n for n in range(len(rows) // 2, len(rows)) if _TIME.match(rows[n]))
    log.with_name(f"{log.name}.2026-11-22-03").write_text("".join(rows[:middle]))
    log.write_text("".join(rows[middle:]))


def pack(log: Path) -> None:
    log.with_name(f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
