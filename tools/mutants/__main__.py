"""Breaks the core one rule at a time and sees who notices: `make mutants`.

A mutant has a name, a function with an operator (`names`, `operators`), and no text of its own.
It is applied to a copy of the tree (what git tracks or would track), never to the tree itself; the
copies go at the end, on Ctrl-C too. A test notices by failing: pytest's exit code 1. Any other
failure (a test that does not exist, a usage error) says that the mutant could not be tried. The
tests must pass on the unchanged copy first. A mutant that runs out of time counts as noticed.

    make mutants                                20 of the core, drawn by the seed that is printed
    make mutants ARGS="--sample 50 --seed 7"
    make mutants ARGS=--named                   those of named.toml, each with tests of its own
    make mutants ARGS=--all                     every one: thousands, for days
    make mutants ARGS="--within NAME"           whose name begins so: of a module, a function
    make mutants ARGS="--within NAME --show"    their diffs, and nothing is run

Exit code 0: each was noticed. Survivors are listed with their diff. Many of a random draw change
nothing that can be observed; what survives is to be read, not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import random
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

from tests.house.files import paths_under
from tools.mutants.names import Mutant, Unusable, core_mutants, diff, mutate, near_tests, read_list

ROOT = Path(__file__).resolve().parents[2]
NAMED = Path(__file__).with_name("named.toml")
TIMEOUT_S = 300
SAMPLE = 20

T = TypeVar("T")
R = TypeVar("R")

Verdict = Literal["noticed", "noticed (time-out)", "SURVIVED", "UNUSABLE"]
NOTICED = ("noticed", "noticed (time-out)")


@dataclass
class Outcome:
    mutant: Mutant
    verdict: Verdict
    seconds: float
    why: str = ""


def command(mutant: Mutant, root: Path) -> list[str]:
    """What must notice it."""
    if mutant.seeds:
        program = "import sys; from emulator.cli import main; main()"
        return [sys.executable, "-c", program, "fuzz", "--seed", "0", "--runs", str(mutant.seeds)]
    return pytest_command(mutant.tests or near_tests(mutant, root))


def pytest_command(arguments: Sequence[str]) -> list[str]:
    quick = ["-x", "-q", "-o", "cache_dir=.pytest_cache"]
    if "-m" not in arguments:
        quick += ["-m", "not live and not slow and not soak"]
    return [sys.executable, "-m", "pytest", *quick, *arguments]


# --- running things in a copy ---------------------------------------------------------------------


@dataclass
class Copies:
    """Copies of the tree, one per job, and what runs in them; all of it ends with `close`, also a
    process that a thread is just starting."""

    root: Path
    folder: Path
    closed: bool = False
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
        """Exit code (None: out of time) and output."""
        environment = os.environ | {
            "PYTHONPATH": str(copy),
            # Two versions of a file of one length within one second would share their bytecode.
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
        if self.closed:  # set before `close` looks at `running`: one of the two ends the process
            end_session(process)
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
        self.closed = True
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


def unchanged_commands(mutants: list[Mutant], root: Path) -> list[list[str]]:
    """What passes while nothing is broken: plain tests together, those with options each."""
    together: dict[str, None] = {}
    commands: dict[tuple[str, ...], None] = {}
    for mutant in mutants:
        tests = mutant.tests or near_tests(mutant, root)
        if mutant.seeds or any(test.startswith("-") for test in tests):
            commands[tuple(command(mutant, root))] = None
        else:
            together |= dict.fromkeys(tests)
    if together:
        commands[tuple(pytest_command(list(together)))] = None
    return [list(one) for one in commands]


def check_unchanged(copies: Copies, argv: list[str]) -> None:
    with copies.one() as copy:
        code, output = copies.run(copy, argv, 3 * TIMEOUT_S)
    if code != 0:
        end = "out of time" if code is None else f"exit code {code}"
        raise Unusable(f"{' '.join(argv)}: {end} with nothing broken: {last_line(output)}")


def attempt(copies: Copies, mutant: Mutant) -> Outcome:
    began = time.monotonic()
    with copies.one() as copy:
        target = copy / mutant.file
        try:
            original = target.read_text(encoding="utf-8")
            broken = mutate(mutant, original)
        except (OSError, Unusable) as error:
            return Outcome(mutant, "UNUSABLE", 0, str(error))
        try:
            target.write_text(broken, encoding="utf-8")
            code, output = copies.run(copy, command(mutant, copy), TIMEOUT_S)
        finally:
            target.write_text(original, encoding="utf-8")
    verdict, why = judge(code, output)
    why = diff(mutant, original) if verdict == "SURVIVED" else why
    return Outcome(mutant, verdict, time.monotonic() - began, why)


def judge(code: int | None, output: str) -> tuple[Verdict, str]:
    """A module that no longer imports (pytest's exit codes 2 and 4 then) is noticed too."""
    if code is None:
        return "noticed (time-out)", ""
    if code == 1 or "error during collection" in output or "while loading conftest" in output:
        return "noticed", ""
    if code == 0:
        return "SURVIVED", ""
    return "UNUSABLE", f"exit code {code}: {last_line(output)}"


def in_parallel(
    copies: Copies, jobs: int, work: Callable[[Copies, T], R], todo: Sequence[T]
) -> Iterator[R]:
    """The results as they come; the first exception, Ctrl-C among them, ends everything."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = [pool.submit(work, copies, one) for one in todo]
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            copies.close()
            raise


def trial(root: Path, mutants: list[Mutant], jobs: int) -> list[Outcome]:
    """Tries them all on copies of `root`; raises Unusable when the unchanged copy fails."""
    copies = Copies(root, Path(tempfile.mkdtemp(prefix="mutants-")))
    outcomes: dict[str, Outcome] = {}
    try:
        copies.make(jobs)
        check_copy(copies)
        for _ in in_parallel(copies, jobs, check_unchanged, unchanged_commands(mutants, root)):
            pass
        say("the tests pass with nothing broken")
        for outcome in in_parallel(copies, jobs, attempt, mutants):
            outcomes[outcome.mutant.name] = outcome
            count = f"{len(outcomes)} of {len(mutants)}"
            say(f"{count}: {outcome.mutant.name}: {outcome.verdict}, {outcome.seconds:.1f} s")
            if outcome.why:
                say(outcome.why)
        return [outcomes[mutant.name] for mutant in mutants]
    finally:
        copies.close()


def say(text: str) -> None:
    print(text, flush=True)


# --- the command line -----------------------------------------------------------------------------


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="at a time (2)")
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help=f"({SAMPLE})")
    parser.add_argument("--seed", type=int, metavar="N", help="of the sample (of today)")
    parser.add_argument("--within", action="append", metavar="NAME", help="names that begin so")
    parser.add_argument("--named", action="store_true", help="those of named.toml")
    parser.add_argument("--all", action="store_true", help="no sample")
    parser.add_argument("--show", action="store_true", help="show diffs and stop")
    return parser.parse_args(argv)


def choose(options: argparse.Namespace) -> list[Mutant]:
    mutants = read_list(NAMED) if options.named else list(core_mutants(ROOT))
    if options.within:
        mutants = [one for one in mutants if one.name.startswith(tuple(options.within))]
    elif not options.named and not options.all:
        seed = int(time.strftime("%Y%m%d")) if options.seed is None else options.seed
        say(f"{options.sample} of {len(mutants)} mutants, --seed {seed}")
        mutants = random.Random(seed).sample(mutants, options.sample)
    if not mutants:
        raise Unusable("no mutant has such a name")
    return mutants


def show(mutants: list[Mutant]) -> None:
    for mutant in mutants:
        try:
            say(diff(mutant, (ROOT / mutant.file).read_text(encoding="utf-8")))
        except (OSError, Unusable) as error:
            say(f"UNUSABLE: {error}")


def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        mutants = choose(options)
        if options.show:
            show(mutants)
            return 0
        outcomes = trial(ROOT, mutants, options.jobs)
    except Unusable as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mutants: interrupted; the copies are gone", file=sys.stderr)
        return 130
    not_noticed = [one for one in outcomes if one.verdict not in NOTICED]
    for outcome in not_noticed:
        say(f"\n{outcome.verdict}: {outcome.mutant.name}\n{outcome.why}")
    say(f"\n{len(outcomes) - len(not_noticed)} of {len(outcomes)} mutants were noticed")
    return 1 if not_noticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
