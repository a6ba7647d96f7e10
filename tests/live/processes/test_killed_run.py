"""A run of processes whose own process is killed: what its brokers had traced is there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from emulator.runs.run_directory import find_run
from emulator.trace import events
from emulator.trace.reader import read_events
from emulator.view.stored import open_run
from tests.live.agreeing import ISR
from tests.live.processes.cluster import _moment

pytestmark = [pytest.mark.live, pytest.mark.slow]
SCENARIO = """\
about: nothing happens for a long time
cluster: {brokers: 2}
topics: {orders: {partitions: [[1, 2]]}}
run: 600s
"""


def test_a_run_that_is_killed_has_what_its_processes_had_traced(tmp_path: Path) -> None:
    (tmp_path / "quiet.yaml").write_text(SCENARIO)
    words = [*ISR, "run", str(tmp_path / "quiet.yaml"), "--target", "processes"]
    with subprocess.Popen(
        [*words, "--out", str(tmp_path / "runs")], stdout=subprocess.DEVNULL
    ) as process:
        for _ in range(900):
            states = [
                event
                for trace in (tmp_path / "runs").glob("quiet/*/processes/broker-*.ndjson")
                if trace.stat().st_size
                for event in read_events(trace)
                if isinstance(event, events.MetadataCacheUpdated) and event.states
            ]
            if {event.broker for event in states} == {1, 2}:
                break
            assert process.poll() is None
            _moment()
        else:
            process.kill()
            raise AssertionError("the topic was not announced")
        run = next((tmp_path / "runs").glob("quiet/*"))
        find_run(str(run))  # while it lives its trace is its own
        assert list(read_events(run / "trace.ndjson")) == []
        os.kill(process.pid, signal.SIGKILL)
    stored = open_run(find_run(str(run)))
    kinds = {type(event) for event in stored.events}
    assert {events.BrokerStarted, events.ZkTransaction, events.MetadataCacheUpdated} <= kinds
    assert [event.seq for event in stored.events] == list(range(len(stored.events)))
    assert all(event.cause < event.seq for event in stored.events)
    before = (run / "trace.ndjson").read_bytes()
    find_run(str(run))
    assert (run / "trace.ndjson").read_bytes() == before
    shutil.rmtree(run)
