"""A separate file system for one broker's files, so that it can be full: a tmpfs, which requires
the right to mount.

When it is closed its files are moved to the run's others. It is unmounted in any case when this
process ends.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from zk.real.child import Watchdog
from zk.real.server import ServerError

SIZE_MB = 128
SPARE_BYTES = 2 * 4096
"""What a checkpoint takes that is written aside: it is a log that is to meet the end first."""

_BALLAST = ".full"
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
        """Leave so much, and a few pages at least."""
        block = bytes(1 << 20)
        with (self.folder / _BALLAST).open("ab", buffering=0) as file:
            with suppress(OSError):
                while file.write(block) == len(block):
                    pass
            file.truncate(max(0, file.tell() - max(free_bytes, SPARE_BYTES)))

    def free(self) -> None:
        """Free the space that `fill` took."""
        (self.folder / _BALLAST).unlink(missing_ok=True)

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
