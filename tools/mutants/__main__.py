"""Breaks one rule at a time and sees who notices: `make mutants`.

mutations.toml lists the mutations: a name, the file, the text to be replaced (it must be
there exactly once), what replaces it, and the tests or the command that must notice. Each is
applied to a copy of the tree (what git tracks or would track), never to the tree itself; the copies
go at the end, on Ctrl-C too. A test notices by failing: pytest's exit code 1. Any other failure (a
syntax error, a test that is not there, a command's usage error) says that the mutation is broken,
not that it was noticed. What is named must pass on the unchanged copy first. A mutant that runs
into its time-out has been noticed. Exit code 0: each was noticed; 1: one survived, or could not be
tried.

    [[mutation]]
    name = "quiet-4s"                                   # what is wrong, in a word or two
    file = "emulator/kafka/broker/isr_propagation.py"
    old = "QUIET_MS = 5_000"
    new = "QUIET_MS = 4_000"
    tests = ["tests/recordings/test_flapping.py"]       # pytest's ids, and options such as -k
    command = ["isr", "conform", "tests/recordings/x"]  # instead of tests: noticed by exit code 1
    seeds = 25                                          # instead: so many seeds of isr fuzz, from 0
    timeout = 120                                       # seconds, 300 where nothing is said
"""

import argparse
import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from tests.house.files import paths_under

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutations.toml")
TIMEOUT_S = 300

T = TypeVar("T")

Verdict = Literal["killed", "killed (time-out)", "SURVIVED", "BROKEN"]
NOTICED = ("killed", "killed (time-out)")


class Unusable(ValueError):
    """A mutation, or the list of them, that cannot be tried as it is written."""


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    seeds: int = 0
    timeout: int = TIMEOUT_S

    def __post_init__(self) -> None:
        if [bool(self.tests), bool(self.command), self.seeds > 0].count(True) != 1:
            raise Unusable(f"{self.name}: give either tests or a command or seeds")
        if self.old == self.new:
            raise Unusable(f"{self.name}: old and new are the same")

    def argv(self) -> list[str]:
        """The command; its first word is looked for beside this Python first (isr, python)."""
        if self.tests:
            pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-o", "cache_dir=.pytest_cache"]
            return [*pytest, *self.tests]
        command = self.command or ("isr", "fuzz", "--seed", "0", "--runs", str(self.seeds))
        beside = Path(sys.executable).parent / command[0]
        return [str(beside) if beside.exists() else command[0], *command[1:]]


class MutationList(msgspec.Struct, forbid_unknown_fields=True):
    mutation: list[Mutation] = []


@dataclass
class Outcome:
    mutation: Mutation
    verdict: Verdict
    seconds: float
    why: str = ""


def read_mutations(path: Path) -> list[Mutation]:
    try:
        mutations = msgspec.toml.decode(path.read_bytes(), type=MutationList).mutation
    except (OSError, msgspec.DecodeError) as error:
        raise Unusable(f"{path}: {error}") from error
    names = [mutation.name for mutation in mutations]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Unusable(f"{path}: {', '.join(twice)}: the same name twice")
    return mutations


def apply(mutation: Mutation, text: str) -> str:
    if (count := text.count(mutation.old)) != 1:
        raise Unusable(f"{mutation.file} holds the old text {count} times, not once")
    return text.replace(mutation.old, mutation.new)


# --- running things in a copy ---------------------------------------------------------------------


@dataclass
class Copies:
    """Copies of the tree, one per job, and what runs in them; all of it ends with `close`."""

    root: Path
    folder: Path
    running: set[subprocess.Popen[str]] = field(default_factory=set)
    idle: queue.SimpleQueue[Path] = field(default_factory=queue.SimpleQueue)

    def make(self, jobs: int) -> None:
        paths = paths_under(self.root)
        for job in range(jobs):
            copy = self.folder / str(job)
            for path in paths:
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.root / path, copy / path)
            # Tests that run `.venv/bin/isr` find it; PYTHONPATH has the copy's own code come first.
            if (self.root / ".venv").exists():
                (copy / ".venv").symlink_to(self.root / ".venv")
            self.idle.put(copy)

    @contextlib.contextmanager
    def one(self) -> Iterator[Path]:
        copy = self.idle.get()
        try:
            yield copy
        finally:
            self.idle.put(copy)

    def run(self, copy: Path, argv: Sequence[str], timeout: int) -> tuple[int | None, str]:
        """Exit code (None: out of time) and output. Bytecode is not written: two versions of a
        file of one length within one second would share it."""
        environment = os.environ | {
            "PYTHONPATH": str(copy),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".hypothesis"),
        }
        process = subprocess.Popen(
            argv,
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.running.add(process)
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            end_session(process)
            return None, process.communicate()[0]
        finally:
            end_session(process)
            self.running.discard(process)

    def close(self) -> None:
        for process in list(self.running):
            end_session(process)
        shutil.rmtree(self.folder, ignore_errors=True)


def end_session(process: subprocess.Popen[str]) -> None:
    """Ends what we started and what it left behind: the session is its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:160] if lines else "(no output)"


# --- the trial ------------------------------------------------------------------------------------


def check_copy(copies: Copies) -> None:
    """It is the copy that a copy runs, not what is installed."""
    where = "import emulator, pathlib; print(pathlib.Path(emulator.__file__).parents[1])"
    with copies.one() as copy:
        _, output = copies.run(copy, [sys.executable, "-c", where], TIMEOUT_S)
        if Path(output.strip()).resolve() != copy.resolve():
            raise Unusable(f"the copy does not run its own code, but: {output.strip()}")


def check_unchanged(copies: Copies, mutation: Mutation) -> None:
    """What is to notice a mutation passes while nothing is broken."""
    with copies.one() as copy:
        code, output = copies.run(copy, mutation.argv(), mutation.timeout)
    if code != 0:
        said = "out of time" if code is None else f"exit code {code}"
        raise Unusable(f"{mutation.name}: {said} with nothing broken: {last_line(output)}")


def attempt(copies: Copies, mutation: Mutation) -> Outcome:
    began = time.monotonic()
    with copies.one() as copy:
        target = copy / mutation.file
        try:
            original = target.read_text(encoding="utf-8")
            target.write_text(apply(mutation, original), encoding="utf-8")
        except (OSError, Unusable) as error:
            return Outcome(mutation, "BROKEN", 0, str(error))
        try:
            code, output = copies.run(copy, mutation.argv(), mutation.timeout)
        finally:
            target.write_text(original, encoding="utf-8")
    verdict, why = judge(code, output)
    return Outcome(mutation, verdict, time.monotonic() - began, why)


def judge(code: int | None, output: str) -> tuple[Verdict, str]:
    if code is None:
        return "killed (time-out)", ""
    if code == 1:
        return "killed", ""
    if code == 0:
        return "SURVIVED", last_line(output)
    return "BROKEN", f"exit code {code}: {last_line(output)}"


def in_parallel(
    copies: Copies, jobs: int, work: Callable[[Copies, Mutation], T], mutations: list[Mutation]
) -> Iterator[T]:
    """The results as they come; the first exception, Ctrl-C among them, ends everything."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, copies, mutation) for mutation in mutations]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            copies.close()
            raise


def print_table(outcomes: list[Outcome]) -> None:
    width = max(len(outcome.mutation.name) for outcome in outcomes)
    print(f"\n{'mutation':{width}}  {'verdict':17}  {'s':>6}  file")
    for outcome in outcomes:
        row = f"{outcome.mutation.name:{width}}  {outcome.verdict:17}  {outcome.seconds:6.1f}"
        print(f"{row}  {outcome.mutation.file}")
        if outcome.why:
            print(f"{'':{width}}  {outcome.why}")
    noticed = sum(outcome.verdict in NOTICED for outcome in outcomes)
    print(f"\n{noticed} of {len(outcomes)} mutations were noticed")


def say(text: str) -> None:
    print(text, flush=True)


def trial(root: Path, mutations: list[Mutation], jobs: int) -> list[Outcome]:
    """Tries them all on copies of `root`; raises Unusable when the unchanged copy fails."""
    copies = Copies(root, Path(tempfile.mkdtemp(prefix="mutants-")))
    noticers = list({tuple(mutation.argv()): mutation for mutation in mutations}.values())
    outcomes: dict[str, Outcome] = {}
    try:
        copies.make(jobs)
        check_copy(copies)
        for count, _ in enumerate(in_parallel(copies, jobs, check_unchanged, noticers), 1):
            say(f"  {count} of {len(noticers)} sets of tests pass with nothing broken")
        for outcome in in_parallel(copies, jobs, attempt, mutations):
            name = outcome.mutation.name
            outcomes[name] = outcome
            done = f"{len(outcomes)} of {len(mutations)}"
            say(f"  {done}: {name}: {outcome.verdict}, {outcome.seconds:.1f} s")
        return [outcomes[mutation.name] for mutation in mutations]
    finally:
        copies.close()


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="at a time (2)")
    parser.add_argument("--only", action="append", metavar="NAME", help="this one; repeatable")
    parser.add_argument("--list", action="store_true", help="name them and stop")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        mutations = read_mutations(LIST)
        if options.only:
            if unknown := set(options.only) - {mutation.name for mutation in mutations}:
                raise Unusable(f"no such mutation: {', '.join(sorted(unknown))}")
            mutations = [m for m in mutations if m.name in options.only]
        if options.list:
            print("\n".join(mutation.name for mutation in mutations))
            return 0
        if not mutations:
            raise Unusable(f"{LIST.name} lists none")
        outcomes = trial(ROOT, mutations, options.jobs)
    except Unusable as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mutants: interrupted; the copies are gone", file=sys.stderr)
        return 130
    print_table(outcomes)
    return 0 if all(outcome.verdict in NOTICED for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
