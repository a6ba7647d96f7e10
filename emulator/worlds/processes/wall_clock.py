"""A broker process's wall clock: the machine's, and an offset from a file.

The file has one number of milliseconds. It outlives the process, like the clock of a machine.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_WIDTH = 20
"""Characters of a number, always: one write replaces it whole."""


def set_wall_clock(path: Path, offset_ms: int) -> None:
    """From now on the clock is so far ahead, or (negative) behind."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, f"{offset_ms:+0{_WIDTH}d}".encode(), 0)
    finally:
        os.close(file)


class WallClock:
    """What a process reads; without a file the machine's clock."""

    def __init__(self, path: Path | None) -> None:
        """Raises OSError."""
        self._file = None if path is None else os.open(path, os.O_RDONLY)

    def now_ms(self) -> int:
        offset_ms = 0 if self._file is None else int(os.pread(self._file, _WIDTH, 0))
        return int(time.time() * 1000) + offset_ms

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
