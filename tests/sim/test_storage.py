"""Logs in files of a modelled disk: what simulated brokers lose, and what they do not."""

from __future__ import annotations

import re

import pytest

from emulator.runs.play import PlayOptions
from emulator.runs.session import Session
from emulator.scenario.errors import UserError
from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.repro import repeated
from emulator.search.fuzz.trial import try_seed
from emulator.search.fuzz.worlds import draw_world
from emulator.trace import events as e
from emulator.trace.difference import digest_of
from emulator.trace.values import TopicPartition

ORDERS = TopicPartition("orders", 0)
_HAS_DISK_FAULT = re.compile(r"\bdisk: \{").search
SCENARIO = """
profile: "{profile}"
cluster: {{brokers: 3, storage: files, config: {{log.flush.interval.messages: {interval}}}}}
topics: {{orders: {{partitions: [[1, 2, 3]], config: {{min.insync.replicas: 2}}}}}}
workload: [{{produce: orders, rate: 20, acks: all, from: 2s, until: 8s}}]
faults: [{faults}]
run: 70s
"""


class Ran:
    """A run to its end, and what it shows."""

    def __init__(
        self, faults: str, profile: str = "2.6", seed: int = 1, interval: int = 1_000_000
    ) -> None:
        text = SCENARIO.format(profile=profile, interval=interval, faults=faults)
        scenario = loads(text, "storage", "storage.yaml")
        with Session(scenario, PlayOptions(seed=seed)) as session:
            session.run.bring_up()
            session.run.run_through(scenario.duration_us)
            self.events = list(session.events)
            self.broken = {one.invariant for one in session.listeners.broken(at_end=True)}
            self.isr = session.listeners.state.partitions.of(ORDERS).now

    def of(self, kind: type, broker: int) -> list[e.AnyEvent]:
        return [one for one in self.events if isinstance(one, kind) and one.broker == broker]

    def opened_at(self, broker: int) -> list[int]:
        """The log ends with which a broker's processes took up the partition first."""
        ends, fresh = [], False
        for event in self.events:
            if event.broker != broker:
                continue
            if isinstance(event, e.BrokerStarting):
                fresh = True
            elif isinstance(event, e.BecomesLeader | e.BecomesFollower) and fresh:
                ends.append(event.leo)
                fresh = False
        return ends


def test_a_process_that_was_killed_finds_its_log_in_the_files() -> None:
    run = Ran("{at: 9s, kill: {broker: 2}}, {at: 40s, start: 2}")
    last = run.of(e.RecordsAppended, 2)[-1]
    assert isinstance(last, e.RecordsAppended)
    assert run.opened_at(2) == [0, last.leo]
    assert not run.broken


@pytest.mark.parametrize("call", ["write", "open", ""])
def test_a_call_that_fails_takes_the_directory_offline_and_nothing_acknowledged_is_lost(
    call: str,
) -> None:
    where = f", call: {call}" if call else ""
    run = Ran(
        f"{{at: 4s, disk: {{broker: 2, fault: error{where}}}, for: 9s}}, {{at: 40s, start: 2}}"
    )
    (halted,) = run.of(e.BrokerHalted, 2)
    assert isinstance(halted, e.BrokerHalted)
    assert halted.reason == "all log directories have failed"
    assert run.of(e.BrokerStarted, 2)[1:]
    assert not run.broken


def test_a_full_disk_does_the_same_and_short_writes_do_nothing() -> None:
    full = Ran("{at: 4s, disk: {broker: 2, fault: full, free_bytes: 700}, for: 30s}")
    assert full.of(e.LogDirFailed, 2)
    assert not full.broken
    short = Ran("{at: 4s, disk: {broker: 2, fault: short_writes}, for: 30s}")
    assert not short.of(e.LogDirFailed, 2)
    assert not short.broken


def test_a_bad_sector_is_met_by_the_next_process() -> None:
    run = Ran(
        "{at: 7s, disk: {broker: 2, fault: bad_sector}}, {at: 9s, kill: {broker: 2}},"
        " {at: 40s, start: 2}"
    )
    (halted,) = run.of(e.BrokerHalted, 2)
    assert isinstance(halted, e.BrokerHalted)
    assert halted.reason == "no log directory can be written"


CRASH = "{at: 9s, crash: {broker: 2, lose: unflushed}}, {at: 40s, start: 2}"


def test_a_crash_loses_what_was_not_flushed_and_the_replica_copies_it_again() -> None:
    ends = {Ran(CRASH, seed=seed).opened_at(2)[-1] for seed in range(4)}
    assert min(ends) < 100
    run = Ran(CRASH)
    assert not run.broken


def test_with_every_record_flushed_a_crash_loses_none_from_3_0_on() -> None:
    """The directory of a new segment is flushed too (KAFKA-3968)."""
    for seed in range(4):
        run = Ran(CRASH, "3.3", seed, interval=1)
        appended = run.of(e.RecordsAppended, 2)
        assert run.opened_at(2)[-1] == max(
            one.leo for one in appended if isinstance(one, e.RecordsAppended) and one.t < 11_000_000
        )


def test_a_seed_is_one_run() -> None:
    assert digest_of(Ran(CRASH, seed=3).events) == digest_of(Ran(CRASH, seed=3).events)


def test_a_disk_fault_needs_files() -> None:
    text = "cluster: {brokers: 1}\nfaults: [{at: 1s, disk: {broker: 1}}]\nrun: 2s\n"
    with pytest.raises(
        UserError, match=r"storage.yaml:2: .*disk needs logs in files: add storage: files"
    ):
        loads(text, "storage", "storage.yaml")


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ("fault: full, call: write", "full takes no call and no count"),
        ("fault: error, free_bytes: 5", "error takes no free_bytes"),
        ("fault: melted", "expected one of error, full"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters: str, problem: str) -> None:
    text = (
        "cluster: {brokers: 1, storage: files}\n"
        f"faults: [{{at: 1s, disk: {{broker: 1, {parameters}}}}}]\nrun: 2s\n"
    )
    with pytest.raises(UserError, match=problem):
        loads(text, "storage", "storage.yaml")


def test_random_worlds_have_disk_faults_with_storage_alone() -> None:
    worlds = [draw_world(seed, VersionOptions("2.6"), storage=True) for seed in range(20)]
    assert sum(_HAS_DISK_FAULT(world) is not None for world in worlds) > 10
    assert all("storage: files" in world for world in worlds)
    assert not any(_HAS_DISK_FAULT(draw_world(seed)) for seed in range(20))


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_worlds_on_files_show_nothing_of_ours(seed: int) -> None:
    """The command that repeats such a seed says so."""
    trial = try_seed(seed, VersionOptions("2.6"), storage=True)
    assert trial.ours == ()
    assert "--storage" in repeated(trial)
