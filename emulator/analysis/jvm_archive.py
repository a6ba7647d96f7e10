"""An archive of the classes that the driver's JVM loads: it halves Spark's start-up time.

Uses Java's class data sharing. Owns the archive's location (one per Java, Spark and user, below
XDG_CACHE_HOME) and the JVM's options that write and read it. A JVM writes the archive when it exits
(180 MB; that JVM runs slower), and later JVMs map it. Java ignores an archive that does not match.
An incomplete archive has no header and is not used.
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
    """Options for the driver's JVM. `write`: it may write an archive when it exits."""
    archive = place(java)
    if _is_whole(archive):
        return f"-XX:SharedArchiveFile={archive} {_QUIET}"
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}" if write and _can_write(archive) else ""


def place(java: Path) -> Path:
    """The path of the archive for this Java and this Spark."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    real = java.resolve()
    release = real.parent.parent / "release"
    environment = (str(real), release.read_text() if release.is_file() else "", pyspark.__file__)
    key = sha256("\n".join((*environment, pyspark.__version__)).encode()).hexdigest()[:16]
    return home / "isr" / f"spark-{key}.jsa"


def _is_whole(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            return int.from_bytes(file.read(4), sys.byteorder) == _MAGIC
    except OSError:
        return False


def _can_write(archive: Path) -> bool:
    """A path with a space would be split into two options."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(archive.parent, os.W_OK) and " " not in str(archive)
