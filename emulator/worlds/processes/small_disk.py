"""A separate file system for one broker's files, so that it can be full: a tmpfs, which requires
the right to mount.

When it is closed its files are moved to the run's others. It is unmounted in any case when this
process ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from math import ceil
from pathlib import Path

from zk.real.child import Watchdog
from zk.real.server import ServerError

SIZE_MB = 128
_ATTEMPTS = 20
_UNMOUNT = 'read orderly || umount -l "$0"'


class SmallDisk:
    """Mounted at a folder."""

    def __init__(self, folder: Path) -> None:
        """Raises ServerError."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        options = f"size={SIZE_MB}m,mode=700"
        _run(["mount", "-t", "tmpfs", "-o", options, "isr", str(folder)])
        self._watchdog: Watchdog | None = Watchdog(["/bin/sh", "-c", _UNMOUNT, str(folder)])

    def fill(self, free_bytes: int = 0) -> None:
        """Leave this much space, in whole blocks. The disk shrinks: a file that takes the space
        would take seconds, and three disks would not be full at the same time."""
        for _ in range(_ATTEMPTS):
            disk = os.statvfs(self.folder)
            blocks = disk.f_blocks - disk.f_bfree + ceil(free_bytes / disk.f_frsize)
            with suppress(ServerError):  # the broker has written since: it was too small
                return self._resize(f"{blocks * disk.f_frsize}")
        raise ServerError(f"{self.folder}: cannot be made full")

    def free(self) -> None:
        """Restore the original size."""
        self._resize(f"{SIZE_MB}m")

    def _resize(self, size: str) -> None:
        _run(["mount", "-o", f"remount,size={size}", str(self.folder)])

    def erase(self) -> None:
        """Delete its content."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def close(self) -> None:
        """Unmount; its files are then in the folder itself."""
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is None:
            return
        self.free()
        copy = self.folder.with_name(f".{self.folder.name}.copy")
        shutil.copytree(self.folder, copy)
        _run(["umount", str(self.folder)])
        watchdog.dismiss()
        self.folder.rmdir()
        copy.rename(self.folder)


def can_mount(beside: Path) -> bool:
    """Whether this process may mount a file system."""
    try:
        SmallDisk(beside / ".probe").close()
    except ServerError:
        return False
    shutil.rmtree(beside / ".probe")
    return True


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ServerError(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        raise ServerError(
            f"{' '.join(command)}: {done.stderr.strip()} (a disk that is full needs root)"
        )
