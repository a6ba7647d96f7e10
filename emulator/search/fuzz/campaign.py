"""A state folder of `isr fuzz`: all trials so far, so that a killed search can be continued.

Owns the folder's files: `trials.ndjson` (a header with the first seed, then one line per trial, in
the order of the seeds) and `findings.md`, which is generated from it. A trial with an incomplete
line is repeated; none is counted twice. Run directories of failures are beside these files.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

import msgspec

from emulator.scenario.errors import UserError
from emulator.search.fuzz.fuzz import FuzzTally
from emulator.search.fuzz.repro import NAME, keep, repeated
from emulator.search.fuzz.trial import Trial
from emulator.trace.untrusted_json import decode_untrusted
from zk.real.child import disowned_by_forks

TRIALS, FINDINGS = "trials.ndjson", "findings.md"


class _Header(msgspec.Struct):
    first_seed: int


_HEADER, _TRIAL = msgspec.json.Decoder(_Header), msgspec.json.Decoder(Trial)


class Campaign:
    """The folder, locked by one process at a time. Use as a context manager."""

    def __init__(self, path: Path, first_seed: int, *, small: bool = False) -> None:
        """`first_seed` is for a new folder; an existing one keeps its own. `small`: reduce the
        worlds of failures. Raises UserError if the folder cannot be used."""
        self.path, self._small = path, small
        self.totals = FuzzTally()
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._file = (path / TRIALS).open("ab+")
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UserError(f"{path}: another isr fuzz uses this folder") from None
        disowned_by_forks(self)
        try:
            self.first_seed = self._read(first_seed)
        except msgspec.DecodeError as error:
            self._file.close()
            raise UserError(f"{path / TRIALS}: not a list of trials: {error}") from None

    def disown(self) -> None:
        # A worker that briefly outlives a killed search must not hold the lock.
        self._file.close()

    def _read(self, first_seed: int) -> int:
        """Read the file's trials, and cut off an incomplete last line."""
        self._file.seek(0)
        text = self._file.read()
        if not text:
            self._write(_Header(first_seed))
            return first_seed
        whole = text[: text.rfind(b"\n") + 1]
        header, _, trials = whole.partition(b"\n")
        first_seed = decode_untrusted(header, _HEADER).first_seed
        for line in trials.splitlines():
            self.totals.take(decode_untrusted(line, _TRIAL))
        self._file.truncate(len(whole))
        return first_seed

    @property
    def next_seed(self) -> int:
        return self.first_seed + self.totals.trials

    def record(self, trial: Trial) -> None:
        """Append the trial, and keep the run of a failure."""
        self._write(trial)
        self.totals.take(trial)
        if trial.ours:
            self._keep(trial)

    def keep_missing(self) -> None:
        """Keep the runs of failures that a killed search recorded but did not keep."""
        for trial in self.totals.failed:
            if self.directory_of(trial) is None:
                self._keep(trial)
        self.write_page()

    def directory_of(self, trial: Trial) -> Path | None:
        """The run directory of a failure; None if it was not kept."""
        directories = sorted((self.path / NAME).glob(f"*-{trial.seed:#x}"))
        return directories[0] if directories else None

    def _keep(self, trial: Trial) -> None:
        keep(trial, self.path, small=self._small)
        self.write_page()

    def _write(self, line: msgspec.Struct) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def write_page(self) -> None:
        """Write `findings.md` atomically."""
        new = self.path / f"{FINDINGS}.new"
        new.write_text(self._page(), encoding="utf-8")
        new.replace(self.path / FINDINGS)

    def _page(self) -> str:
        totals = self.totals
        lines = [
            "# Findings of isr fuzz",
            "",
            f"{totals.trials:,} seeds from {self.first_seed:#x}, {len(totals.failed)} failed.",
            "",
            f"{totals.events:,} events, {totals.virtual_us / 1e6:,.0f} s of virtual time.",
            "",
            "| known hazard | seeds | such as |",
            "|---|--:|---|",
            *(
                f"| {name} | {count} | `{totals.examples[name]:#x}` |"
                for name, count in sorted(totals.hazards.items())
            ),
        ]
        for trial in totals.failed:
            lines += ["", f"## {trial.seed:#x}", "", f"    {repeated(trial)}", ""]
            lines += [f"- {one.invariant} {one.partition or ''}: {one.text}" for one in trial.ours]
        return "\n".join([*lines, ""])

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.write_page()
        self._file.close()
