"""Classes that the driver's JVM has loaded before, kept in one file: Spark starts in half the time.

Owns the archive's place (one per Java, Spark and user; XDG_CACHE_HOME) and the options of the JVM
that write and read it: Java's own class data sharing. A JVM that was asked to writes the archive
when it ends (180 MB, and it is slower meanwhile), later ones map it. Java itself checks that it
fits and goes without it if not; one that was not written to its end has no header, and counts as
none.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path

import pyspark

_MAGIC = 0xF00BABA8
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def options(java: Path, *, write: bool) -> str:
    """For the driver's JVM; `write`: this one may leave an archive at its end."""
    archive = place(java)
    if _is_whole(archive):
        return f"-XX:SharedArchiveFile={archive} {_QUIET}"
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}" if write and _can_write(archive) else ""


def place(java: Path) -> Path:
    """Where the archive of this Java and this Spark is."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    real = java.resolve()
    release = real.parent.parent / "release"
    said = (str(real), release.read_text() if release.is_file() else "", pyspark.__file__)
    key = sha256("\n".join((*said, pyspark.__version__)).encode()).hexdigest()[:16]
    return home / "isr" / f"spark-{key}.jsa"


def _is_whole(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            return int.from_bytes(file.read(4), sys.byteorder) == _MAGIC
    except OSError:
        return False


def _can_write(archive: Path) -> bool:
    """A path with a blank would be two options."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(archive.parent, os.W_OK) and " " not in str(archive)
