"""Finds the cluster of a command line: one started by `isr cluster up`, by its run."""

from __future__ import annotations

from pathlib import Path

from emulator.runs.control import Status, request_of
from emulator.runs.run_directory import RUNS, find_run
from emulator.scenario.errors import UserError
from zk.real.server import HOST, Address, parse_address

CLUSTER = "cluster"
"""The scenario name under which its runs are kept."""


def newest_cluster(run: str) -> Path:
    """The directory of a run, or (if empty) of the newest cluster. Raises UserError."""
    if not run and not (RUNS / CLUSTER).is_dir():
        raise UserError(f"{RUNS}/ has no cluster: isr cluster up starts one (--run names another)")
    return find_run(run or CLUSTER)


def with_host(text: str) -> str:
    """Completes `:2181`, a port on loopback."""
    return f"{HOST}{text}" if text.startswith(":") else text


def zookeeper_of(text: str) -> Address:
    """An address, or that of a running cluster, by its run. Raises UserError, ServerError."""
    if ":" in text:
        return parse_address(with_host(text))
    status = request_of(find_run(text), Status()).status
    assert status is not None
    return parse_address(status.zookeeper)
