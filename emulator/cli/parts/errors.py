"""How a command reports an error: one line on standard error, and an exit code.

64: a usage error, or something is missing on the user's machine. 70: an internal error (the message
names the file with its traceback) or an environment error (a full disk). Tracebacks never reach the
terminal.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from emulator.kernel.scheduler import TaskFailed
from emulator.runs.run_directory import RunDirectoryError
from emulator.scenario.errors import UserError

USER, FAULT, INTERRUPTED, BROKEN_PIPE = 64, 70, 130, 141
_UsageError: Any = typer.BadParameter.__mro__[2]  # click's own base, wherever typer keeps it


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """Turn a failure to write this file into a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None


class InternalError(Exception):
    """An internal error whose traceback has been written to a file."""

    def __init__(self, cause: BaseException, traceback_file: Path | None) -> None:
        where = f"; the traceback is in {traceback_file}" if traceback_file else ""
        super().__init__(f"internal error: {type(cause).__name__}: {one_line(cause)}{where}")


def report_error(error: BaseException) -> int:
    """Print one line about the error. Returns the exit code."""
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        # The reader has closed the output (`isr ... | head`), which rich may have turned into a
        # SystemExit. No message can be shown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if isinstance(error, SystemExit):
        raise error
    error = _inner(error)
    code = exit_code(error)
    text = one_line(error)
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        text = " ".join(error.format_message().split()) + hint
    if code is None:
        code, text = FAULT, str(InternalError(error, _keep(error)))
    print(f"isr: {text}", file=sys.stderr)
    return code


def exit_code(error: BaseException) -> int | None:
    """The exit code of an expected exception; None for an internal error."""
    from emulator.analysis.errors import AnalysisError
    from emulator.trace.reader import BadTrace
    from emulator.view.selectors import NotInRun
    from emulator.worlds.errors import DidNotComeUp
    from emulator.worlds.processes.local_brokers import BrokerEnded
    from zk.real.server import ServerError, StartFailed

    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if isinstance(
        error, InternalError | RunDirectoryError | StartFailed | DidNotComeUp | BrokerEnded
    ):
        return FAULT
    if isinstance(
        error, UserError | ServerError | BadTrace | NotInRun | AnalysisError | _UsageError
    ):
        return USER
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return FAULT
    return None


def has_own_exit_code(error: BaseException) -> bool:
    """Whether the exception is expected, and its message is all that the user needs."""
    return exit_code(_inner(error)) is not None


def one_line(error: BaseException) -> str:
    """An exception's message without line breaks."""
    text = " ".join(str(error).split())
    return "interrupted" if isinstance(error, KeyboardInterrupt | typer.Abort) else text


def _inner(error: BaseException) -> BaseException:
    """The error inside a failed kernel task."""
    while isinstance(error, TaskFailed) and exit_code(error.error) is not None:
        error = error.error
    return error


def _keep(error: BaseException) -> Path | None:
    """Write the traceback to a temporary file."""
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="isr-traceback-", suffix=".txt", delete=False
        ) as file:
            file.write(text)
    except OSError:
        return None
    return Path(file.name)
