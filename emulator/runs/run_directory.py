"""A run directory: the inputs of a run, its trace, and its summary.

Owns `runs/<scenario>/<time>-<seed>/` and the names in it: `scenario.yaml` as read, `run.json`
(seed, options, versions, the command that repeats it), `trace.ndjson`, `summary.json`,
`zookeeper/`. The trace is flushed several times a second, so that a killed run is readable. A full
disk stops the writing but not the world; it is reported once the world can be stopped.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

import zk
from emulator.scenario.errors import UserError, instead_of
from emulator.trace.events import AnyEvent
from emulator.trace.reader import Header, TraceWriter

RUNS = Path("runs")
LATEST = "latest"
TRACE = "trace.ndjson"
SUMMARY = "summary.json"
SCENARIO = "scenario.yaml"
RUN = "run.json"
TRACEBACK = "traceback.txt"
FLUSH_EVERY_S = 0.2
RUN_HELP = "A run: latest, SCENARIO (its newest), SCENARIO/RUN, or a directory."
_PACKAGES = ("kafka-isr-emulator", "kazoo", "msgspec", "pyspark")


class RunDirectoryError(Exception):
    """The run directory cannot be written; the message is one line."""


class RunDirectory:
    """One run's directory, from before its first event until its summary."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: OSError | None = None
        self._trace: TraceWriter | None = None
        self._flushed_s = 0.0

    @classmethod
    def create(cls, base: Path, scenario: str, seed: int, now: datetime) -> RunDirectory:
        """Create a directory below `base` and let `base/latest` point at it. Raises UserError."""
        path = make_directory(base, scenario, seed, now)
        try:
            _point(base / LATEST, path)
        except OSError as error:
            raise UserError(f"{_named(base, error)}: {error.strerror}") from None
        return cls(path)

    @property
    def zookeeper(self) -> Path:
        """The data directory of an embedded server."""
        return self.path / "zookeeper"

    def describe(self, text: str, about: Mapping[str, object]) -> None:
        """Write the inputs of the run."""
        self._write(SCENARIO, text.encode())
        self._write(RUN, pretty({**about, "versions": versions()}))

    def rewrite_scenario(self, text: str) -> None:
        """Replace the scenario by one that includes the interactive actions."""
        self._write(SCENARIO, text.encode())

    def open_trace(self, header: Header) -> None:
        """Create `trace.ndjson`; from now on `self` may be a listener of the sink."""
        try:
            self._trace = TraceWriter(self.path / TRACE, header)
            self._trace.flush()
        except OSError as error:
            self.close()
            raise self._failed(error) from None

    def __call__(self, event: AnyEvent) -> None:
        """Write one event. After an error, which is remembered, nothing more is written."""
        if self.failure is not None or self._trace is None:
            return
        try:
            self._trace(event)
            now_s = time.monotonic()
            if now_s - self._flushed_s > FLUSH_EVERY_S:
                self._flushed_s = now_s
                self._trace.flush()
        except OSError as error:
            self.failure = error

    def flush(self) -> None:
        """Flush to the operating system. Raises RunDirectoryError if writing has failed."""
        if self._trace is not None and self.failure is None:
            try:
                self._trace.flush()
            except OSError as error:
                self.failure = error
        if self.failure is not None:
            raise self._failed(self.failure)

    def close(self) -> None:
        """Close the trace, without reporting errors."""
        trace, self._trace = self._trace, None
        try:
            if trace is not None:
                trace.close()
        except OSError as error:
            self.failure = self.failure or error

    def summarize(self, summary: Mapping[str, object]) -> None:
        """Write `summary.json` atomically."""
        self._write(SUMMARY, pretty(summary))

    def keep_traceback(self, text: str) -> Path | None:
        """The file with an internal error's traceback; None if it cannot be written."""
        try:
            self._write(TRACEBACK, text.encode())
        except RunDirectoryError:
            return None
        return self.path / TRACEBACK

    def _write(self, name: str, content: bytes) -> None:
        aside = self.path / f".{name}.part"
        try:
            aside.write_bytes(content)
            aside.replace(self.path / name)
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> RunDirectoryError:
        self.failure = self.failure or error
        return RunDirectoryError(f"{self.path}: {error.strerror}; the trace up to then is kept")


def make_directory(base: Path, name: str, seed: int, now: datetime) -> Path:
    """Create `base/name/TIME-SEED`, a unique directory. Raises UserError."""
    parent, stamp = base / name, f"{now.astimezone(UTC):%Y%m%dT%H%M%S}-{seed:#x}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        # The second of two runs in one second gets the suffix `-2`.
        for path in (parent / (stamp if i == 1 else f"{stamp}-{i}") for i in range(1, 1_000)):
            with suppress(FileExistsError):
                path.mkdir()
                return path
    except OSError as error:
        raise UserError(f"{_named(base, error)}: {error.strerror}") from None
    raise UserError(f"{parent}: too many runs in one second")


def _point(link: Path, target: Path) -> None:
    """Let `link` point at `target` atomically. Raises UserError."""
    if link.is_dir() and not link.is_symlink():
        raise UserError(
            f"{link} is a directory where a link to the newest run belongs: move it away"
        )
    aside = link.with_name(f".{link.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    aside.symlink_to(os.path.relpath(target, link.parent))
    aside.replace(link)


def _named(base: Path, error: OSError) -> str:
    return str(error.filename or base)


def pretty(value: Mapping[str, object]) -> bytes:
    """The format of the JSON files in a run directory."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def versions() -> dict[str, str]:
    """The versions behind this run; `code` is a digest of this project's source."""
    made_with = {"python": platform.python_version(), "platform": platform.platform()}
    made_with["code"] = _digest_of_the_code()
    for package in _PACKAGES:
        try:
            made_with[package] = version(package)
        except PackageNotFoundError:
            continue
    return made_with


@cache
def _digest_of_the_code() -> str:
    digest = sha256()
    packages = Path(__file__).parents[1], Path(zk.__file__).parent
    for file in sorted(file for package in packages for file in package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def find_run(text: str, base: Path = RUNS) -> Path:
    """Resolve RUN of a command line: a run directory (or its trace), or below `base` `latest`, a
    scenario's name (its newest run), or `SCENARIO/RUN`. Raises UserError."""
    run = _find_run(text, base)
    if not (run / SUMMARY).exists():  # killed, or still running
        from emulator.worlds.processes.trace_files import recover_killed_run

        recover_killed_run(run, run / TRACE)
    return run


def _find_run(text: str, base: Path) -> Path:
    path = Path(text)
    if path.is_file():
        return path.parent
    for place in (path, base / text):
        if (place / TRACE).is_file():
            return place
    runs = [trace.parent for trace in (base / text).glob(f"*/{TRACE}")]
    if runs:
        return max(runs, key=_sort_key)
    if path.is_dir():
        raise UserError(f"{text}: not a run directory: it has no {TRACE}")
    link = next((place for place in (path, base / text) if place.is_symlink()), None)
    if link is not None and not link.exists():
        newest = max(
            (trace.parent for trace in base.glob(f"*/*/{TRACE}")), key=_sort_key, default=None
        )
        instead = (
            f"the newest run left is {newest}" if newest else "isr run SCENARIO makes a new one"
        )
        raise UserError(f"{link} points to {link.readlink()}, which is gone; {instead}")
    raise UserError(f"there is no run {text}; {_suggestion(text, base)}")


def _sort_key(run: Path) -> tuple[str, int]:
    """The sort key of runs: the time in the name, then the start of the run."""
    begun = run / (RUN if (run / RUN).exists() else TRACE)
    return run.name.partition("-")[0], begun.stat().st_mtime_ns


def _suggestion(wrong: str, base: Path) -> str:
    """Suggestions: the existing runs."""
    names = sorted({trace.parent.parent.name for trace in base.glob(f"*/*/{TRACE}")})
    if not names:
        return f"{base}/ has no runs: isr run SCENARIO makes one"
    return instead_of(wrong, [*[LATEST] * (base / LATEST).exists(), *names])
