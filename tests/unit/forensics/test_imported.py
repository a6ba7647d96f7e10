"""Logs of real clusters, given to the import as a stranger's: what comes out is what was there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from emulator.forensics.findings import find, isr_history
from emulator.forensics.imported import (
    Imported,
    Result,
    import_folders,
    not_judged,
    read_import,
)
from emulator.invariants.base import check
from emulator.scenario.errors import UserError
from emulator.trace.values import TopicPartition
from emulator.view.stored import open_run
from tests.unit.forensics.strangers import (
    CRASH_RPC,
    SHRINK,
    STUCK,
    ahead_ms,
    given,
    mangle,
    shift,
)

ORDERS = TopicPartition("orders", 0)
AS_ZOOKEEPER_HAS_IT = {
    STUCK: [(1, 2, 3), (2, 3), (2, 3, 1)],
    SHRINK: [(1, 2, 3), (1, 3), (1, 3, 2)],
    CRASH_RPC: [(1, 2, 3), (2, 3), (2, 3, 1)],
}

EACH = [(1, 1700), (2, -1700), (3, 1700)]
"""A broker, and how far its clock is ahead."""

SHIFTED = [
    pytest.param(name, broker, ms, marks=[] if row == column else [pytest.mark.slow])
    for row, name in enumerate(AS_ZOOKEEPER_HAS_IT)
    for column, (broker, ms) in enumerate(EACH)
]
"""Each cluster and each clock once in `make test`, each cluster with each clock in test-all."""

OF_OTHER_VERSIONS = {
    f"kafka-{version}-leader-crash": version
    for version in ("0.8.2.2", "0.10.2.2", "1.1.1", "3.9.1")
}


def imported(folder: Path, tmp_path: Path) -> Result:
    return import_folders([folder], tmp_path / "runs")


Untouched = Callable[..., Result]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Untouched:
    """The import of a cluster's unchanged logs, made once."""

    @cache
    def of(name: str, *, transactions: bool = True) -> Result:
        folder = tmp_path_factory.mktemp(name)
        return imported(given(name, folder / "logs", transactions=transactions), folder)

    return of


@pytest.mark.parametrize("name", AS_ZOOKEEPER_HAS_IT)
@pytest.mark.parametrize("transactions", [True, False], ids=["with", "without"])
def test_the_isr_history_is_zookeepers_with_its_log_and_without(
    name: str, transactions: bool, untouched: Untouched
) -> None:
    events = untouched(name, transactions=transactions).performed.events
    assert isr_history(events) == {ORDERS: AS_ZOOKEEPER_HAS_IT[name]}


@pytest.mark.parametrize("transactions", [True, False], ids=["with", "without"])
@pytest.mark.parametrize(("name", "broker", "ms"), SHIFTED)
def test_a_shifted_clock_is_found_and_what_is_rotated_gzipped_or_missing_changes_nothing(
    name: str, transactions: bool, broker: int, ms: int, tmp_path: Path
) -> None:
    folder = given(name, tmp_path / "logs", transactions=transactions)
    mangle(folder, ms, broker)
    result = imported(folder, tmp_path)
    assert abs(ahead_ms(result.imported.clocks, broker) - ms) <= 50
    assert isr_history(result.performed.events) == {ORDERS: AS_ZOOKEEPER_HAS_IT[name]}
    assert "broker 1 has no controller.log" in "\n".join(result.imported.unknown)


@pytest.mark.parametrize(("name", "broker", "ms"), SHIFTED)
def test_what_zookeeper_says_of_a_registration_ties_a_clock_that_nothing_else_does(
    name: str, broker: int, ms: int, tmp_path: Path
) -> None:
    """Without a state-change.log, and without ZooKeeper's own: half the time that a cold broker
    took to register, at most."""
    folder = given(name, tmp_path / "logs", transactions=False)
    shift(folder, broker, ms)
    for log in folder.glob("broker-*/state-change.log"):
        log.unlink()
    clocks = imported(folder, tmp_path).imported.clocks
    assert clocks.reference.startswith("broker-")
    assert abs(ahead_ms(clocks, broker) - ms) <= 150


def test_a_clock_that_is_right_is_left_alone(untouched: Untouched) -> None:
    assert [one.ms for one in untouched(SHRINK).imported.clocks.ahead] == [0, 0, 0]


def test_a_stuck_leader_is_diagnosed_by_name(untouched: Untouched) -> None:
    for transactions in (True, False):
        result = untouched(STUCK, transactions=transactions)
        (case,) = find(result.performed.events).diagnoses
        assert (case.name, case.broker, case.partitions) == ("KAFKA-2729", 1, (ORDERS,))
        assert "rejected 6 ISR updates of orders-0: its cached version is 0" in case.seen
        assert case.ended == "a LeaderAndIsr brought the current state"


@pytest.mark.parametrize("name", [SHRINK, CRASH_RPC])
def test_a_healthy_cluster_has_no_diagnosis_and_nothing_stuck(
    name: str, untouched: Untouched
) -> None:
    found = find(untouched(name).performed.events)
    assert (found.diagnoses, found.stuck) == ([], [])


@pytest.mark.parametrize("ms", [0, 1700, -1700])
def test_metadata_that_was_stale_has_its_windows(ms: int, tmp_path: Path) -> None:
    """Two ISR changes, one notification 6.5 s after the second; whatever a broker's clock says."""
    folder = given(SHRINK, tmp_path / "logs")
    shift(folder, 2, ms)
    stale = find(imported(folder, tmp_path).performed.events).stale
    assert [(one.broker, one.shown, one.newest) for one in stale] == [
        (1, 0, 2), (2, 0, 2), (3, 0, 2)
    ]  # fmt: skip
    assert all(9_900_000 < (one.to_us or 0) - one.from_us < 10_300_000 for one in stale)


@pytest.mark.parametrize("name", AS_ZOOKEEPER_HAS_IT)
def test_real_kafka_keeps_the_invariants(name: str, untouched: Untouched) -> None:
    result = untouched(name)
    assert list(check(open_run(result.performed.directory).events, liveness=False)) == []


@pytest.mark.parametrize("name", OF_OTHER_VERSIONS)
def test_other_versions_tell_the_same_story_in_their_own_words(
    name: str, untouched: Untouched
) -> None:
    """The leader is killed and comes back; what 0.8.2 logs names no ZooKeeper version."""
    result = untouched(name)
    history = isr_history(result.performed.events)[ORDERS]
    assert history[:3] == [(1, 2, 3), (2, 3), (2, 3, 1)]
    version = OF_OTHER_VERSIONS[name]
    said = "" if version == "0.8.2.2" else version
    assert {broker.version for broker in result.imported.brokers.values()} == {said}
    assert result.imported.clocks.reference == "zookeeper"
    assert all(abs(clock.ms) <= 10 for clock in result.imported.clocks.ahead)
    assert find(result.performed.events).diagnoses == []


@pytest.mark.parametrize("name", [*AS_ZOOKEEPER_HAS_IT, *OF_OTHER_VERSIONS])
def test_every_line_of_these_clusters_is_understood_or_counted(
    name: str, untouched: Untouched
) -> None:
    result = untouched(name)
    for broker in result.imported.brokers.values():
        counted = broker.understood + sum(broker.left_out.values())
        assert counted + sum(broker.not_understood.values()) == broker.lines
        assert broker.not_understood == {}
    assert result.imported.unread == {}


def test_one_brokers_logs_alone_say_what_is_unknown(tmp_path: Path) -> None:
    folder = given(STUCK, tmp_path / "logs", transactions=False)
    result = imported(folder / "broker-2", tmp_path)
    assert isr_history(result.performed.events) == {ORDERS: AS_ZOOKEEPER_HAS_IT[STUCK]}
    unknown = "\n".join(result.imported.unknown)
    assert "no ZooKeeper transaction log" in unknown
    assert "broker 1 is named by others, but none of its logs is present" in unknown


@pytest.mark.parametrize("name", AS_ZOOKEEPER_HAS_IT)
def test_server_logs_alone_hold_the_isr_history_but_for_elections(
    name: str, tmp_path: Path
) -> None:
    folder = given(name, tmp_path / "logs", transactions=False)
    for log in [*folder.rglob("state-change.log"), *folder.rglob("controller.log")]:
        log.unlink()
    result = imported(folder, tmp_path)
    history = isr_history(result.performed.events)[ORDERS]
    assert history == AS_ZOOKEEPER_HAS_IT[name][-len(history) :]
    assert len(history) >= 2
    unknown = "\n".join(result.imported.unknown)
    assert "broker 1 has no state-change.log: which control requests it received" in unknown
    assert "broker 1 has no controller.log: whether and when it was controller is un" in unknown


def test_server_logs_alone_hold_a_stuck_leader_with_its_end(tmp_path: Path) -> None:
    """KAFKA-2729 was reported until the end for a leader that followed 50 ms later."""
    folder = given(STUCK, tmp_path / "logs", transactions=False)
    for log in [*folder.rglob("state-change.log"), *folder.rglob("controller.log")]:
        log.unlink()
    (case,) = find(imported(folder, tmp_path).performed.events).diagnoses
    assert (case.name, case.broker) == ("KAFKA-2729", 1)
    assert case.to_us is not None
    assert case.to_us - case.from_us < 5_000_000


def test_what_0_8_does_not_log_is_unknown_and_not_none(tmp_path: Path) -> None:
    """Without ZooKeeper's log there is no version of any state."""
    folder = given("kafka-0.8.2.2-leader-crash", tmp_path / "logs", transactions=False)
    result = imported(folder, tmp_path)
    assert "requests name no versions of states" in "\n".join(result.imported.unknown)
    assert not result.findings.states_known
    assert result.findings.stuck == []


def test_state_changes_without_trace_are_said_to_be_unknown(tmp_path: Path) -> None:
    folder = given(STUCK, tmp_path / "logs", transactions=False)
    for log in folder.rglob("state-change.log"):
        rows = [row for row in log.read_text().splitlines(keepends=True) if "] TRACE" not in row]
        log.write_text("".join(rows))
    result = imported(folder, tmp_path)
    assert "broker 1 logs state changes without TRACE" in "\n".join(result.imported.unknown)
    assert not result.findings.metadata_known
    (case,) = result.findings.diagnoses
    assert (case.name, case.to_us is None) == ("KAFKA-2729", False)
    unjudged = [name for names in not_judged(result.imported).values() for name in names]
    assert "KAFKA-9212" in unjudged
    assert "KAFKA-2729" not in unjudged


def test_a_broker_that_replicates_nothing_and_whose_logs_are_not_here_is_named(
    tmp_path: Path,
) -> None:
    """From the live brokers in others' logs, and from ZooKeeper, of which it once was a client."""
    folder = given(STUCK, tmp_path / "logs")
    shutil.rmtree(folder / "broker-4")
    unknown = imported(folder, tmp_path).imported.unknown
    assert unknown == ["broker 4 is named by others, but none of its logs is present"]


def test_a_line_that_is_cut_and_one_that_nobody_knows_are_counted(tmp_path: Path) -> None:
    folder = given(SHRINK, tmp_path / "logs")
    log = folder / "broker-1" / "state-change.log"
    strange = "[2026-11-22 03:33:00,000] INFO [Broker id=1] Sang {} (state.change.logger)\n"
    cut = "[2026-11-22 03:33:01,000] INFO [Broker id=1] Handl"
    log.write_text(log.read_text() + strange.format(7) + strange.format(8) + cut)
    about = imported(folder, tmp_path).imported
    assert about.brokers[1].not_understood == {"state.change.logger: [Broker id=N] Sang N": 2}
    assert about.unread == {"broker-1/state-change.log: cut in the middle": 1}


def test_mixed_versions_are_said(tmp_path: Path) -> None:
    folder = given(SHRINK, tmp_path / "logs")
    log = folder / "broker-2" / "server.log"
    log.write_text(log.read_text().replace("Kafka version: 2.6.3", "Kafka version: 2.4.1"))
    about = imported(folder, tmp_path).imported
    assert about.unknown == ["brokers ran different versions: 2.4.1, 2.6.3"]


def test_what_was_imported_is_kept_beside_the_trace(tmp_path: Path) -> None:
    result = imported(given(SHRINK, tmp_path / "logs"), tmp_path)
    kept = read_import(result.performed.directory)
    assert isinstance(kept, Imported)
    assert kept == result.imported
    assert read_import(tmp_path) is None


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "no log of Kafka's in or below it (state-change.log*, controller.log*, server.log*"),
        ({"access.log": "GET /\n"}, "the first is 'GET /'; tried: log4j (Kafka, Confluent), "),
        ({"server.log": "2026-11-22 nginx: started\n"}, "the first is '2026-11-22 nginx: started'"),
        ({"server.log.gz": "not gzipped"}, "no line is in a known layout"),
    ],
)
def test_what_is_no_kafka_cluster_is_refused(
    files: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    for name, text in files.items():
        (tmp_path / "logs" / name).write_text(text)
    with pytest.raises(UserError) as refused:
        imported(tmp_path / "logs", tmp_path)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)
