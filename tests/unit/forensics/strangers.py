"""Logs of real clusters that `isr record` ran, given away as a stranger's would come.

`given` unpacks a recorded cluster's logs into a folder; the other functions do to it what happens
to logs: a clock that is wrong, a file that was rotated, gzipped, or is not there.
"""

from __future__ import annotations

import datetime as dt
import gzip
import re
import shutil
from pathlib import Path

import msgspec

from emulator.forensics.clocks import Clocks
from emulator.forensics.findings import isr_history
from emulator.forensics.imported import Result, import_folders
from emulator.view.stored import open_run

LOGS = Path(__file__).with_name("logs")
STUCK = "kafka-2.6.3-leader-loses-zookeeper"
SHRINK = "kafka-2.6.3-shrink-and-expand"
CRASH_RPC = "kafka-2.7.2-leader-crash"
SHIFTED_MS = 1700
_TIME = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]", re.MULTILINE)


class Stranger(msgspec.Struct, frozen=True):
    """The run's logs, mangled and imported: the clock of broker 1 was `shifted_ms` ahead, and this
    was estimated, with ZooKeeper's log and without; the ISR history was the same."""

    shifted_ms: int
    found_ms: int
    found_without_ms: int
    same: bool
    same_without: bool


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
    """Like log4j's DailyRollingFileAppender, in the middle."""
    rows = log.read_text().splitlines(keepends=True)
    middle = next(n for n in range(len(rows) // 2, len(rows)) if _TIME.match(rows[n]))
    log.with_name(f"{log.name}.2026-11-22-03").write_text("".join(rows[:middle]))
    log.write_text("".join(rows[middle:]))


def pack(log: Path) -> None:
    log.with_name(f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()


def as_a_strangers(run: Path, scratch: Path, ms: int = SHIFTED_MS) -> Stranger:
    """The logs of a recorded run, its clock shifted, a file rotated, gzipped, and missing: what
    `isr import` makes of them beside what ZooKeeper's log says."""
    real = isr_history(open_run(run).events)
    with_log, without = (_imported(run, scratch / str(kept), ms, kept) for kept in (True, False))
    return Stranger(
        shifted_ms=ms,
        found_ms=ahead_ms(with_log.imported.clocks, 1),
        found_without_ms=ahead_ms(without.imported.clocks, 1),
        same=isr_history(with_log.performed.events) == real,
        same_without=isr_history(without.performed.events) == real,
    )


def _imported(run: Path, scratch: Path, ms: int, transactions: bool) -> Result:
    folder = scratch / "logs"
    for logs in sorted(run.glob("broker-*/logs")):
        shutil.copytree(logs, folder / logs.parent.name)
    if transactions:
        shutil.copytree(run / "zookeeper", folder / "zookeeper")
    mangle(folder, ms)
    return import_folders([folder], scratch / "runs")


def mangle(folder: Path, ms: int, broker: int = 1) -> None:
    """Mangle the logs in ways that occur in practice."""
    shift(folder, broker, ms)
    rotate(folder / "broker-2" / "server.log")
    pack(folder / "broker-1" / "state-change.log")
    (folder / "broker-1" / "controller.log").unlink()


def ahead_ms(clocks: Clocks, broker: int) -> int:
    """How far ahead of all other brokers' clocks on the whole."""
    others = [one.ms for one in clocks.ahead if one.clock != f"broker-{broker}"]
    others += [0] if clocks.reference.startswith("broker-") else []
    return clocks.correction_ms(f"broker-{broker}") - sorted(others)[len(others) // 2]
