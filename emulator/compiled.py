"""Hot modules as machine code, where somebody has built them; without a build all is as written.

Owns which modules those are, when a build counts, and how one is made (mypyc: the same text, its
types taken at their word). A build lies in the environment and not beside the sources, under the
digest of all of them: where one letter has changed, everything runs as written. Whoever starts a
process says `use` before it imports anything else; tests never do. Knows nothing of what the
modules do. ADR 9 says why, and what a compiled module may not contain.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

HOT = (
    "emulator.broker.admin",
    "emulator.broker.apis",
    "emulator.broker.delayed",
    "emulator.broker.elect_leaders",
    "emulator.broker.fetch_session",
    "emulator.broker.fetcher",
    "emulator.broker.local_reads",
    "emulator.broker.partition",
    "emulator.broker.purgatory",
    "emulator.broker.replica",
    "emulator.broker.replica_manager",
    "emulator.kernel.choices",
    "emulator.kernel.rng",
    "emulator.kernel.scheduler",
    "emulator.kernel.sync",
    "emulator.model.offset_log",
    "emulator.runtime.latency",
    "emulator.runtime.live_clock",
    "emulator.runtime.network",
    "emulator.runtime.process_trace",
    "emulator.runtime.producer",
    "emulator.runtime.sending",
    "emulator.runtime.stored_logs",
    "emulator.trace.logs",
    "emulator.trace.sink",
)
SWITCH = "ISR_COMPILED"
"""`0` in the environment: as written, whatever was built."""
SOURCES = Path(__file__).resolve().parents[1]
BUILDS = Path(sys.prefix) / "compiled"
_SUFFIX = EXTENSION_SUFFIXES[0]
_SETUP = """\
import sys
from mypyc.build import mypycify
from setuptools import setup

aside, *files = sys.argv[1:]
options = ["--config-file=/dev/null", f"--cache-dir={aside}/mypy", *files]
extensions = mypycify(
    options, opt_level="2", debug_level="0", multi_file=True, target_dir=f"{aside}/c"
)
wanted = ["build_ext", f"--build-lib={aside}/lib", f"--build-temp={aside}/objects"]
setup(name="hot", packages=[], ext_modules=extensions, script_args=wanted)
"""


class BuildFailed(Exception):
    """There is no build; what the compiler said is in a file."""


class Finder:
    """Finds hot modules in a build (importlib.abc.MetaPathFinder)."""

    def __init__(self, build: Path) -> None:
        self._files = {
            ".".join(path.relative_to(build).parts).removesuffix(_SUFFIX): path
            for path in build.rglob(f"*{_SUFFIX}")
        }

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        found = self._files.get(name)
        return None if found is None else spec_from_file_location(name, found)


def use() -> bool:
    """Let hot modules come from their build; False: there is none of these sources, or it is too
    late."""
    if os.environ.get(SWITCH) == "0" or not BUILDS.is_dir():
        return False
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return True
    build = build_of(digest())
    if not build.is_dir() or any(name in sys.modules for name in HOT):
        return False
    sys.meta_path.insert(0, Finder(build))
    return True


def digest(sources: Path = SOURCES) -> str:
    """Of all sources, not only the hot ones: what those know of the others' types must hold."""
    found = sha256(sys.version.encode())
    for package in ("emulator", "zk"):
        for path in sorted((sources / package).rglob("*.py")):
            text = path.read_bytes()
            found.update(f"\0{path.relative_to(sources)}\0{len(text)}\0".encode())
            found.update(text)
    return found.hexdigest()


def build_of(sources_digest: str) -> Path:
    """Where the build of these sources is, if there is one."""
    return BUILDS / sources_digest[:32]


def build() -> Path:
    """Make the build of these sources, and drop all others. BuildFailed."""
    wanted = build_of(digest())
    if not wanted.is_dir():
        BUILDS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILDS, prefix=".making-") as aside:
            _compile(Path(aside))
            shutil.rmtree(wanted, ignore_errors=True)
            (Path(aside) / "lib").rename(wanted)
    for other in BUILDS.iterdir():
        if other.is_dir() and other != wanted and not other.name.startswith("."):
            shutil.rmtree(other, ignore_errors=True)
    return wanted


def _compile(aside: Path) -> None:
    files = [f"{name.replace('.', '/')}.py" for name in HOT]
    command = [sys.executable, "-c", _SETUP, str(aside), *files]
    log = BUILDS / "build.log"
    with log.open("w") as out:
        ended = subprocess.run(command, cwd=SOURCES, stdout=out, stderr=out, check=False)
    if ended.returncode != 0:
        lines = [line for line in log.read_text().splitlines() if "rror" in line]
        raise BuildFailed(f"{lines[-1][:200] if lines else 'no build'} (all of it: {log})")


def main() -> int:
    """`python -m emulator.compiled`: the build, or one line saying why there is none."""
    if build_of(digest()).is_dir():
        return 0
    if shutil.which(os.environ.get("CC", "cc")) is None:
        print("compiled: no C compiler; all modules run as written", file=sys.stderr)
        return 0
    print(f"compiled: {len(HOT)} modules, a minute or two of one core", file=sys.stderr)
    try:
        build()
    except BuildFailed as error:
        print(f"compiled: {error}", file=sys.stderr)
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(main())
